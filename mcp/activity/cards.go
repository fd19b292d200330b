package activity

import "bytes"

// card adds the payment card number that begins at start, and returns its end; 0
// where there is none. It is one of a length and prefix that are issued, right by
// its checksum, written without gaps or in the groups of a card, and stands
// alone: no part of a longer number, a fraction, a word.
func (f *finder) card(start int) (end int) {
	b := f.b
	if b[start] < '2' || b[start] > '6' || f.goesBack(start) {
		return 0
	}
	var number [17]byte
	var gap byte
	n, group := 0, 0
	end = start
	for ; end < len(b) && n < len(number); end++ {
		c := b[end]
		if classes[c]&digit != 0 {
			number[n] = c - '0'
			n++
			continue
		}
		if c != ' ' && c != '-' || gap != 0 && c != gap || !groupEnds(number[0], group, n) {
			break
		}
		gap = c
		group++
	}
	switch {
	case n < 14 || n > 16 || f.goesOn(end),
		gap != 0 && (group != lastGroup(number[0]) || f.isAmongGroups(start, end, gap)),
		!issued(number[:n]) || !luhn(number[:n]),
		gap == 0 && f.isIdentifier(start):
		return 0
	}
	f.add(start, end, "card_number")
	return end
}

// groupEnds reports whether the group of that number, from 0, ends on a card
// behind n digits and another follows.
func groupEnds(first byte, group, n int) bool {
	if first == 3 {
		return group == 0 && n == 4 || group == 1 && n == 10
	}
	return group < 3 && n == 4*(group+1)
}

// lastGroup is the number of the last group of a card.
func lastGroup(first byte) int {
	if first == 3 {
		return 2
	}
	return 3
}

// goesBack reports whether what begins at start is part of a number or word that
// stands before. The letter of an escape sequence of JSON is none.
func (f *finder) goesBack(start int) bool {
	before := f.b[:start]
	switch n := len(before); {
	case n == 0:
		return false
	case n > 1 && before[n-2] == '\\', n > 5 && before[n-6] == '\\' && before[n-5] == 'u':
		return before[n-1] == '.'
	default:
		return classes[before[n-1]]&word != 0 || before[n-1] == '.'
	}
}

// goesOn reports whether what ends at end is part of what follows.
func (f *finder) goesOn(end int) bool {
	rest := f.b[end:]
	switch {
	case len(rest) == 0:
		return false
	case rest[0] == '.':
		return count(rest[1:], digit) > 0
	}
	return classes[rest[0]]&word != 0
}

// isAmongGroups reports whether other groups of four digits stand beside, so that
// it is one of many numbers.
func (f *finder) isAmongGroups(start, end int, gap byte) bool {
	before, rest := f.b[:start], f.b[end:]
	return start > 0 && before[start-1] == gap && countBack(before[:start-1], digit) >= 4 ||
		len(rest) > 0 && rest[0] == gap && count(rest[1:], digit) >= 4
}

// issued reports whether a number begins as cards of its length do: Visa,
// Mastercard, Discover, JCB, UnionPay with 16 digits, American Express with 15,
// Diners Club with 14.
func issued(number []byte) bool {
	two := int(number[0])*10 + int(number[1])
	four := two*100 + int(number[2])*10 + int(number[3])
	switch len(number) {
	case 16:
		return two/10 == 4 || two >= 51 && two <= 55 || four >= 2221 && four <= 2720 ||
			four == 6011 || four >= 6440 && four <= 6599 || four >= 3528 && four <= 3589 || two == 62
	case 15:
		return two == 34 || two == 37
	case 14:
		return four >= 3000 && four <= 3059 || two == 36 || two == 38 || two == 39
	}
	return false
}

// luhn reports whether the last digit is right. A number of few different digits
// is a stand-in.
func luhn(number []byte) bool {
	sum := 0
	var seen [10]bool
	different := 0
	for i, d := range number {
		if !seen[d] {
			seen[d] = true
			different++
		}
		v := int(d)
		if (len(number)-i)%2 == 0 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return sum%10 == 0 && different > 1
}

// isIdentifier reports whether the number at start is the value of a member or
// parameter whose name ends in id.
func (f *finder) isIdentifier(start int) bool {
	before := bytes.TrimRight(f.b[max(0, start-8):start], `\": =`)
	return len(before) < min(8, start) && len(before) >= 2 && bytes.EqualFold(before[len(before)-2:], []byte("id"))
}
