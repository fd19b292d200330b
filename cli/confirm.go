package cli

import (
	"bufio"
	"context"
	"errors"
	"strings"
)

// confirm has a person agree to what cannot be undone. yes is the answer given
// on the command line; without it and without a person nothing is done.
func (a *app) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if !a.IsTerminal(Stdin) || !a.IsTerminal(Stderr) {
		return misuse("", "--yes required, as there is nobody to ask")
	}
	if _, err := a.Stderr.Write([]byte("mcpproxy: " + clean(question) + " [y/N] ")); err != nil {
		return err
	}
	answer := make(chan string, 1)
	// Nothing ends the read of a terminal but a line; who interrupts the program
	// leaves it reading until the process has ended.
	go func() {
		line, _ := bufio.NewReader(a.Stdin).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return nil
		}
		return errors.New("nothing was changed")
	case <-ctx.Done():
		return ctx.Err()
	}
}
