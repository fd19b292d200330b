package catalogue

import (
	"encoding/json"
	"fmt"
)

// The right tool is to be among the First tools for Goal of the questions. Held is
// what is reached, so that no change of the search loses it unseen.
const (
	First = 5
	Goal  = 19
	Held  = 18
)

// Question is what a person would ask, and the tools any of which is right.
type Question struct {
	Question string   `json:"question"`
	Tools    []string `json:"tools"`
}

// Questions are twenty of them. They and their answers were written from the list of
// the tools' names, before any search was made.
func Questions() ([]Question, error) {
	text, err := files.ReadFile("questions.json")
	if err != nil {
		return nil, fmt.Errorf("read questions: %w", err)
	}
	var questions []Question
	if err := json.Unmarshal(text, &questions); err != nil {
		return nil, fmt.Errorf("read questions: %w", err)
	}
	return questions, nil
}
