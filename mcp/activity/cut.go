package activity

import (
	"strconv"
	"unicode/utf8"
)

// cut returns at most most bytes of valid UTF-8: the beginning of text, and a
// remark that tells how many bytes there were in all. Where there is no room for
// it the remark is left out.
func cut(text []byte, most, all int) string {
	remark := "… (cut, " + strconv.Itoa(all) + " bytes in all)"
	if len(remark) > most/2 {
		remark = ""
	}
	n := min(len(text), most-len(remark))
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return string(text[:n]) + remark
}
