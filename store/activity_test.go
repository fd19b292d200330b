package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// rowsFrom are n rows with IDs that sort by their number.
func rowsFrom(first, n int) []Activity {
	var rows []Activity
	for i := first; i < first+n; i++ {
		rows = append(rows, Activity{
			ID: fmt.Sprintf("id-%09d", i), At: time.UnixMilli(int64(1_700_000_000_000 + i)), Duration: time.Duration(i) * time.Microsecond,
			Kind: "call", Status: []string{"success", "error"}[i%2], Server: fmt.Sprintf("server-%d", i%3), Tool: "read",
			RequestBytes: 10, ResponseBytes: int64(i), Request: "{}", Response: `{"n":` + fmt.Sprint(i) + `}`,
		})
	}
	return rows
}

// numbers are the numbers of rows, which their IDs have.
func numbers(t *testing.T, rows []Activity) (list []int) {
	t.Helper()
	for _, r := range rows {
		var n int
		if _, err := fmt.Sscanf(r.ID, "id-%d", &n); err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

func addActivity(t testing.TB, db *DB, rows []Activity, limits ActivityLimits) {
	t.Helper()
	if err := db.AddActivity(t.Context(), rows, limits); err != nil {
		t.Fatal(err)
	}
}

// expectTotal holds the total against the rows.
func expectTotal(t testing.TB, db *DB) ActivityTotal {
	t.Helper()
	total, err := db.ActivityTotal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var is ActivityTotal
	err = db.pool.QueryRowContext(t.Context(), "SELECT coalesce(max(seq), 0), count(*), coalesce(sum(size), 0) FROM activity").Scan(&is.Last, &is.Records, &is.Bytes)
	if err != nil || total.Records != is.Records || total.Bytes != is.Bytes || total.Last < is.Last {
		t.Errorf("total %+v, rows %+v, %v", total, is, err)
	}
	return total
}

func TestActivityKeepsEveryField(t *testing.T) {
	db := fresh(t)
	var row Activity
	for _, v := range []reflect.Value{reflect.ValueOf(&row).Elem(), reflect.ValueOf(&row.ActivityDetail).Elem()} {
		for i := range v.NumField() {
			switch f := v.Field(i); f.Kind() {
			case reflect.String:
				f.SetString("value of " + v.Type().Field(i).Name)
			case reflect.Int64:
				f.SetInt(int64(i + 1))
			}
		}
	}
	row.Seq, row.At, row.Duration = 1, time.UnixMilli(1_700_000_000_123), 1500*time.Microsecond
	addActivity(t, db, []Activity{row}, ActivityLimits{})
	got, found, err := db.ActivityByID(t.Context(), row.ID)
	if err != nil || !found || !reflect.DeepEqual(got, row) {
		t.Errorf("got %+v, %v, %v\nwant %+v", got, found, err, row)
	}
	if list, err := db.Activity(t.Context(), ActivityFilter{}); err != nil || len(list) != 1 || !reflect.DeepEqual(list[0], row) {
		t.Errorf("listed %+v, %v", list, err)
	}
	if _, found, err := db.ActivityByID(t.Context(), "other"); found || err != nil {
		t.Errorf("another ID: %v, %v", found, err)
	}
}

func TestActivityFilter(t *testing.T) {
	db := fresh(t)
	addActivity(t, db, rowsFrom(5, 5), ActivityLimits{})
	addActivity(t, db, rowsFrom(0, 5), ActivityLimits{}) // began earlier, ended later
	for name, test := range map[string]struct {
		filter ActivityFilter
		want   []int
	}{
		"all":            {ActivityFilter{}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		"server":         {ActivityFilter{Server: "server-1"}, []int{1, 4, 7}},
		"server, status": {ActivityFilter{Server: "server-1", Status: "error"}, []int{1, 7}},
		"nothing":        {ActivityFilter{Tool: "write"}, nil},
		"oldest":         {ActivityFilter{Limit: 2}, []int{0, 1}},
		"newest":         {ActivityFilter{Limit: 2, Last: true}, []int{8, 9}},
		"from, to":       {ActivityFilter{From: "id-000000003", To: "id-000000006"}, []int{3, 4, 5}},
		"written after":  {ActivityFilter{After: 4}, []int{9, 0, 1, 2, 3, 4}},
		"written last":   {ActivityFilter{After: 1, Limit: 2, Last: true}, []int{3, 4}},
		"no such caller": {ActivityFilter{Caller: "' OR 1=1 --"}, nil},
	} {
		rows, err := db.Activity(t.Context(), test.filter)
		if got := numbers(t, rows); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, test.want)
		}
	}
	for end, want := range map[string][]string{"0003": {"id-000000003"}, "id-000000003": {"id-000000003"}, "%3": nil, "": nil, "xid-000000003": nil} {
		if ids, err := db.ActivityEnding(t.Context(), end); err != nil || !reflect.DeepEqual(ids, want) {
			t.Errorf("ending %q: %v, %v", end, ids, err)
		}
	}
	sum := 0
	err := db.EachActivity(t.Context(), ActivityFilter{Server: "server-1"}, func(a *Activity) { sum += int(a.ResponseBytes) })
	if err != nil || sum != 12 {
		t.Errorf("the rows of server-1 sum up to %d, %v", sum, err)
	}
}

func TestActivityOfOneIDIsKeptOnce(t *testing.T) {
	db := fresh(t)
	addActivity(t, db, rowsFrom(0, 3), ActivityLimits{})
	addActivity(t, db, rowsFrom(2, 2), ActivityLimits{})
	rows, err := db.Activity(t.Context(), ActivityFilter{})
	if got := numbers(t, rows); err != nil || !reflect.DeepEqual(got, []int{0, 1, 2, 3}) {
		t.Errorf("%v, %v", got, err)
	}
	expectTotal(t, db)
}

// TestActivityLimits holds each limit with every write.
func TestActivityLimits(t *testing.T) {
	for name, limits := range map[string]ActivityLimits{
		"records": {Records: 50},
		"bytes":   {Bytes: 20_000},
		"age":     {Before: "id-000000950"},
	} {
		t.Run(name, func(t *testing.T) {
			db := fresh(t)
			for i := 0; i < 1000; i += 10 {
				addActivity(t, db, rowsFrom(i, 10), limits)
				if total := expectTotal(t, db); !total.within(limits) {
					t.Fatalf("%+v after %d rows", total, i+10)
				}
			}
			rows, err := db.Activity(t.Context(), ActivityFilter{})
			if err != nil || len(rows) < 40 || len(rows) > 200 || rows[len(rows)-1].ID != "id-000000999" {
				t.Errorf("%d rows are left, %v", len(rows), err)
			}
			if name == "age" && rows[0].ID != limits.Before {
				t.Errorf("the oldest is %s", rows[0].ID)
			}
		})
	}
}

// TestActivityTrim goes down to lowered limits piece by piece, and never gives a
// Seq again.
func TestActivityTrim(t *testing.T) {
	db := fresh(t)
	addActivity(t, db, rowsFrom(0, 500), ActivityLimits{})
	limits := ActivityLimits{Records: 100, Before: "id-000000420"}
	for _, want := range []int{200, 200, 20, 0} {
		if n, err := db.TrimActivity(t.Context(), limits, 200); n != want || err != nil {
			t.Errorf("removed %d, %v; want %d", n, err, want)
		}
	}
	if total := expectTotal(t, db); total.Records != 80 {
		t.Errorf("%d are left", total.Records)
	}
	if _, err := db.TrimActivity(t.Context(), ActivityLimits{Before: "z"}, 1000); err != nil {
		t.Error(err)
	}
	if total := expectTotal(t, db); total != (ActivityTotal{Last: 500}) {
		t.Errorf("an empty log has %+v", total)
	}
	addActivity(t, db, rowsFrom(0, 1), ActivityLimits{})
	if rows, err := db.Activity(t.Context(), ActivityFilter{}); err != nil || rows[0].Seq != 501 {
		t.Errorf("%+v, %v", rows, err)
	}
}

// TestActivityFootprint holds the size that rows are counted with against that of
// the file.
func TestActivityFootprint(t *testing.T) {
	sizes := map[string]func() int{
		"small": func() int { return 50 }, "half a page": func() int { return 1900 }, "a page": func() int { return 3700 },
		"some pages": func() int { return 9000 }, "mixed": func() int { return rand.IntN(9000) },
	}
	for name, size := range sizes {
		t.Run(name, func(t *testing.T) {
			db := fresh(t)
			before := fileSize(t, db)
			for i := 0; i < 2000; i += 100 {
				rows := rowsFrom(i, 100)
				for j := range rows {
					rows[j].Response = strings.Repeat("x", size())
				}
				addActivity(t, db, rows, ActivityLimits{})
			}
			counted, is := expectTotal(t, db).Bytes, fileSize(t, db)-before
			t.Logf("counted %d, file %d", counted, is)
			if is > counted*11/10 || is < counted*6/10 {
				t.Errorf("counted %d bytes, the file has %d", counted, is)
			}
		})
	}
}

// fileSize is the size of the database in pages, in bytes.
func fileSize(t *testing.T, db *DB) int64 {
	t.Helper()
	if !db.shrink(t.Context(), 0) {
		t.Fatal("the log cannot be emptied")
	}
	info, err := os.Stat(db.Path())
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestActivityWithoutStore(t *testing.T) {
	var db *DB
	ctx := t.Context()
	addActivity(t, db, rowsFrom(0, 1), ActivityLimits{})
	if n, err := db.TrimActivity(ctx, ActivityLimits{Records: 1}, 1); n != 0 || err != nil {
		t.Error(n, err)
	}
	if rows, err := db.Activity(ctx, ActivityFilter{}); rows != nil || err != nil {
		t.Error(rows, err)
	}
	if _, found, err := db.ActivityByID(ctx, "x"); found || err != nil {
		t.Error(found, err)
	}
	if total, err := db.ActivityTotal(ctx); total != (ActivityTotal{}) || err != nil {
		t.Error(total, err)
	}
	if err := db.EachActivity(ctx, ActivityFilter{}, func(*Activity) { t.Error("a row") }); err != nil {
		t.Error(err)
	}
}

// TestActivityOfALostTransaction leaves neither rows nor a count.
func TestActivityOfALostTransaction(t *testing.T) {
	db := fresh(t)
	err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
		if err := tx.AddActivity(ctx, rowsFrom(0, 3), ActivityLimits{}); err != nil {
			return err
		}
		return context.Canceled
	})
	if err == nil {
		t.Error("no error")
	}
	if total := expectTotal(t, db); total != (ActivityTotal{}) {
		t.Errorf("%+v", total)
	}
}

// BenchmarkAddActivity is the write of a row in a group of 100.
func BenchmarkAddActivity(b *testing.B) {
	db := fresh(b)
	n := 0
	for b.Loop() {
		if n++; n%100 == 0 {
			addActivity(b, db, rowsFrom(n, 100), ActivityLimits{Records: 10_000})
		}
	}
}
