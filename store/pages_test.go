package store

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// pageOf is a page of so many parts of so many bytes.
func pageOf(key string, expires time.Time, parts, size int) Page {
	p := Page{Key: []byte(key), Head: "head of " + key, ExpiresAt: expires}
	for i := range parts {
		p.Parts = append(p.Parts, PagePart{First: int64(i * 10), Body: bytes.Repeat([]byte{byte('a' + i%26)}, size)})
	}
	return p
}

// partsFrom is the parts from an offset on, at most so many.
func partsFrom(t *testing.T, db *DB, key string, offset int64, most int) string {
	t.Helper()
	var list []string
	err := db.PageParts(t.Context(), []byte(key), offset, func(p PagePart) bool {
		list = append(list, fmt.Sprintf("%d:%.3s", p.First, p.Body))
		return len(list) < most
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, " ")
}

func TestPages(t *testing.T) {
	db, ctx := fresh(t), t.Context()
	now := time.UnixMilli(1_000_000)
	if err := db.PutPages(ctx, now, 1<<20, pageOf("a", now.Add(time.Hour), 3, 5000), pageOf("b", now.Add(2*time.Hour), 1, 0)); err != nil {
		t.Fatal(err)
	}
	again := open(t, db.Path())
	p, found, err := again.Page(ctx, []byte("a"))
	if err != nil || !found || p.Head != "head of a" || !p.ExpiresAt.Equal(now.Add(time.Hour)) || p.Parts != nil {
		t.Errorf("%+v, %v, %v", p, found, err)
	}
	for _, test := range []struct {
		key    string
		offset int64
		most   int
		want   string
	}{
		{"a", 0, 9, "0:aaa 10:bbb 20:ccc"}, {"a", 9, 1, "0:aaa"}, {"a", 10, 9, "10:bbb 20:ccc"}, {"a", 999, 9, "20:ccc"},
		{"b", 0, 9, "0:"}, {"c", 0, 9, ""},
	} {
		if got := partsFrom(t, again, test.key, test.offset, test.most); got != test.want {
			t.Errorf("%s from %d: %q, want %q", test.key, test.offset, got, test.want)
		}
	}
	if err := db.PutPages(ctx, now, 1<<20, pageOf("a", now, 1, 1)); err == nil {
		t.Error("a key was given twice")
	}
	// What has expired stays until somebody writes.
	later := now.Add(time.Hour)
	if err := again.PutPages(ctx, later, 1<<20, pageOf("d", later.Add(time.Hour), 1, 1)); err != nil {
		t.Fatal(err)
	}
	if _, found, err := db.Page(ctx, []byte("a")); found || err != nil {
		t.Errorf("an expired page is there, %v", err)
	}
	if err := db.DeletePage(ctx, []byte("b")); err != nil {
		t.Fatal(err)
	}
	if _, found, _ := db.Page(ctx, []byte("b")); found {
		t.Error("a deleted page is there")
	}
	var parts int
	if err := db.pool.QueryRowContext(ctx, "SELECT count(*) FROM page_parts").Scan(&parts); parts != 1 || err != nil {
		t.Errorf("%d parts are left, %v", parts, err)
	}
	check(t, db)
}

// TestPagesWithinTheirLimit: the oldest go, and a page that has no room alone
// changes nothing.
func TestPagesWithinTheirLimit(t *testing.T) {
	db, ctx := fresh(t), t.Context()
	now := time.UnixMilli(1_000_000)
	one := pageOf("x", now, 2, 100_000)
	most := 3*one.Bytes() + 1000
	for i := range 10 {
		if err := db.PutPages(ctx, now, most, pageOf(fmt.Sprint(i), now.Add(time.Hour), 2, 100_000)); err != nil {
			t.Fatal(err)
		}
	}
	there := func() (list string) {
		for i := range 12 {
			if _, found, _ := db.Page(ctx, []byte(fmt.Sprint(i))); found {
				list += fmt.Sprint(i, " ")
			}
		}
		return list
	}
	if got := there(); got != "7 8 9 " {
		t.Errorf("there are %s", got)
	}
	err := db.PutPages(ctx, now, most, pageOf("10", now.Add(time.Hour), 2, 100_000), pageOf("11", now.Add(time.Hour), 2, 1_000_000))
	if !errors.Is(err, ErrTooLarge) || there() != "7 8 9 " {
		t.Errorf("%v, and there are %s", err, there())
	}
	var pages int64
	if err := db.pool.QueryRowContext(ctx, "SELECT sum(pgsize) FROM dbstat WHERE name IN ('pages', 'page_parts')").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if sum := 3 * one.Bytes(); pages > sum*11/10 || pages < sum*7/10 {
		t.Errorf("they take %d bytes, and are counted as %d", pages, sum)
	}
	check(t, db)
}

func TestPagesWithoutAStore(t *testing.T) {
	var db *DB
	if err := db.PutPages(t.Context(), time.Now(), 1, pageOf("a", time.Now(), 1, 1)); err != nil {
		t.Error(err)
	}
	if _, found, err := db.Page(t.Context(), []byte("a")); found || err != nil {
		t.Error(found, err)
	}
	if err := errors.Join(db.DeletePage(t.Context(), []byte("a")), db.PageParts(t.Context(), []byte("a"), 0, func(PagePart) bool { return false })); err != nil {
		t.Error(err)
	}
}
