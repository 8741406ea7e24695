package conformance

import (
	"testing"
	"time"
)

// is tells whether an event tells of this write. Deletions have no number, but none is told before it is asked for: without this,
// one that a list passed over would be taken for the deletion of the object before.
func (w write) is(told telling) bool {
	if told.at.Before(w.began) {
		return false
	}
	if w.deletion || told.gone {
		return w.deletion && told.gone
	}
	return w.number == told.number
}

// compare holds what was told against what was written, object by object, from the end to the beginning: the last write has to
// be there, and one that is missing before it has to have been passed over by a list.
func (o *observer) compare(t *testing.T, resource string, w *writer) {
	t.Helper()
	var path string
	for _, kind := range o.kinds {
		if kind.resource.Resource == resource {
			path = kind.path()
		}
	}
	byObject := map[string][]write{}
	for _, done := range w.written {
		byObject[done.object] = append(byObject[done.object], done)
	}
	kept := o.journals[resource]
	kept.Lock()
	defer kept.Unlock()
	passedOver, lag := 0, time.Duration(0)
	for name, written := range byObject {
		told := kept.told[name]
		last := len(told) - 1
		for index := len(written) - 1; index >= 0; index-- {
			done := written[index]
			switch {
			case last >= 0 && done.is(told[last]):
				lag = max(lag, told[last].at.Sub(done.done))
				last--
			case last+1 < len(told) && o.requests.relisted(path, done.began, told[last+1].at):
				passedOver++
			default:
				t.Errorf("%s %s, write %d, was lost to %s", resource, name, done.number, o.name)
			}
		}
		if last >= 0 {
			t.Errorf("%s %s: %s was told what was not written, or twice: %v", resource, name, o.name, told[:last+1])
		}
	}
	t.Logf("%s, %s: %d writes (%d failed attempts, the longest write took %s), %d events, %d passed over by lists, the last %s late",
		o.name, resource, len(w.written), w.failures, w.outage.Round(time.Millisecond), kept.events, passedOver, lag.Round(time.Millisecond))
}

// report says how often the informers listed and watched.
func (o *observer) report(t *testing.T) {
	t.Helper()
	o.requests.Lock()
	defer o.requests.Unlock()
	for _, kind := range o.kinds {
		// The first list is no relist.
		t.Logf("%s, %s: %d relists, %d watches", o.name, kind.resource.Resource, len(o.requests.lists[kind.path()])-1, o.requests.watches[kind.path()])
	}
}
