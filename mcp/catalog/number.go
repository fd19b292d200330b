package catalog

import (
	"bytes"
	"strconv"
)

// Limits of how numbers are written.
const (
	maxExponentDigits = 9
	maxPlainZeros     = 20 // at the end of a whole number
	maxPlainSmall     = 6  // zeros behind the point
)

// number writes a number in the one form that all ways of writing the same
// value have; no digit of it is lost.
func (n *normaliser) number() {
	end := n.at
	for end < len(n.in) && bytes.IndexByte([]byte("+-.0123456789eE"), n.in[end]) >= 0 {
		end++
	}
	text := n.in[n.at:end]
	n.at = end
	negative := text[0] == '-'
	mantissa, exponent := bytes.TrimPrefix(text, []byte("-")), []byte(nil)
	if i := bytes.IndexAny(mantissa, "eE"); i >= 0 {
		mantissa, exponent = mantissa[:i], mantissa[i+1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	digits := append(bytes.Clone(whole), fraction...)
	scale := -len(fraction) // the value is digits * 10^scale
	significant := bytes.TrimRight(digits, "0")
	scale += len(digits) - len(significant)
	significant = bytes.TrimLeft(significant, "0")
	if len(significant) == 0 {
		n.out = append(n.out, '0')
		return
	}
	power, ok := exponentOf(exponent)
	if !ok {
		n.out = append(n.out, text...) // beyond all that anybody counts
		return
	}
	if negative {
		n.out = append(n.out, '-')
	}
	n.out = appendDecimal(n.out, significant, scale+power)
}

// exponentOf reads the digits of an exponent with their sign; ok is false for
// one of more than nine digits.
func exponentOf(text []byte) (power int, ok bool) {
	digits := bytes.TrimLeft(text, "+-")
	digits = bytes.TrimLeft(digits, "0")
	if len(digits) > maxExponentDigits {
		return 0, false
	}
	power, _ = strconv.Atoi("0" + string(digits)) // it is valid
	if len(text) > 0 && text[0] == '-' {
		power = -power
	}
	return power, true
}

// appendDecimal writes digits * 10^scale; digits neither begin nor end with 0.
func appendDecimal(out, digits []byte, scale int) []byte {
	point := len(digits) + scale // digits before the point
	zeros := func(count int) { out = append(out, bytes.Repeat([]byte("0"), count)...) }
	switch {
	case scale == 0, scale > 0 && scale <= maxPlainZeros:
		out = append(out, digits...)
		zeros(scale)
	case scale < 0 && point > 0:
		out = append(append(append(out, digits[:point]...), '.'), digits[point:]...)
	case scale < 0 && point > -maxPlainSmall:
		out = append(out, "0."...)
		zeros(-point)
		out = append(out, digits...)
	default:
		out = append(out, digits[0])
		if len(digits) > 1 {
			out = append(append(out, '.'), digits[1:]...)
		}
		out = strconv.AppendInt(append(out, 'e'), int64(point)-1, 10)
	}
	return out
}
