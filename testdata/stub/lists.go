package stub

import (
	"os"
)

// lists is the scenario with the lists that count now: those of its Lists file,
// where it has one.
func (s *server) lists() *Scenario {
	if s.sc.Lists == "" {
		return s.sc
	}
	now := *s.sc
	text, err := os.ReadFile(s.sc.Lists)
	if err == nil {
		var file listsFile
		if err = strictly(text, &file); err == nil {
			now.Tools, now.Resources, now.Templates, now.Prompts = file.Tools, file.Resources, file.Templates, file.Prompts
		}
	}
	if err != nil {
		s.log.add("lists", err.Error())
	}
	return &now
}

// listsFile is the content of a Lists file.
type listsFile struct {
	Tools     *List `json:"tools"`
	Resources *List `json:"resources"`
	Templates *List `json:"templates"`
	Prompts   *List `json:"prompts"`
}
