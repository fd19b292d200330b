package cli

import "unicode"

// reveal makes a text from elsewhere safe to show and leaves nothing in it that
// a person would not see: what is reviewed may have been written to deceive.
func reveal(s string) string { return escape(s, hidden) }

// revealText is reveal for text of several lines: newlines and tabs stay.
func revealText(s string) string {
	return escape(s, func(r rune) bool { return hidden(r) && r != '\n' && r != '\t' })
}

// hidden reports whether a rune is harmful, shows nothing, or looks like a blank
// and is none. Joiners and variation selectors, which ordinary text may have, are
// among them: nobody can tell by looking what they are there for.
func hidden(r rune) bool {
	switch {
	case r < 0x7f:
		return harmful(r)
	case harmful(r):
		return true
	case r == 0x2800, r == 0x3164, r == 0xffa0: // blanks that are no white space
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.Co, unicode.Zs, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
