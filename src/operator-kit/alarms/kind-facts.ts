import type { AlarmKinds, Severity } from './model.ts';

/** A kind that a later version no longer has may be in the history. */
export function factsOf(kinds: AlarmKinds, kind: string): { severity: Severity; runbook: string } {
  const { severity = 'warning', runbook = 'open-alarms' } = kinds[kind] ?? {};
  return { severity, runbook: `docs/runbook.md#${runbook}` };
}
