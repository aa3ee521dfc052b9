package berthsandbox_test

import (
	"testing"
	"time"

	"example.com/berthsandbox"
)

// Tests that must fail: other-languages.long.test.ts runs them beside examples/go.

func TestAFaultThatNeverTriggers(t *testing.T) {
	berthsandbox.ForTest(t, flags...).Fault("http-500", options{"skip": 3})
}

func TestAMachineThatIsLeft(t *testing.T) {
	sandbox := berthsandbox.ForTest(t, flags...)
	rent(t, clientOf(sandbox), "left")
	sandbox.AssertJournal("all_destroyed", nil)
}

func TestAVerdictThatFails(t *testing.T) {
	sandbox := berthsandbox.ForTest(t, flags...)
	rent(t, clientOf(sandbox), "left")
	sandbox.Sleep(time.Minute)
	sandbox.AssertVerdict()
}

func TestARequestThatTheSandboxRefuses(t *testing.T) {
	berthsandbox.ForTest(t, flags...).Fault("http-600", nil)
}
