import type { Power } from '../orchestrator/model/platform-driver.ts';
import type { Machines } from './machines.ts';
import type { MachineRecord } from './records.ts';

/** Changes that a platform or a guest makes to a machine without a call. */
export type MachineEvent = 'reclaim' | 'reap' | 'powerOff' | 'suspend' | 'breakDown' | 'loss';

const POWER_OFF_MS = 1_000;

/** Whether the event is possible in the machine's current state. */
export function canHappen(event: MachineEvent, { power }: MachineRecord): boolean {
  return power === (event === 'reap' ? 'stopped' : 'running');
}

/**
 * Applies the event now. A reclaimed machine runs on for `noticeMs`, by default not at all, and is gone `goneAfterMs`
 * later.
 */
export function happen<M extends MachineRecord>(
  event: MachineEvent,
  {
    machines,
    machine,
    now,
    noticeMs = 0,
    goneAfterMs,
  }: { machines: Machines<M>; machine: M; now: number; noticeMs?: number; goneAfterMs: number },
): void {
  const change = (fields: Partial<MachineRecord>): void => machines.change(machine, fields as Partial<M>);
  const turn = (power: Power, until: number | null): void => change({ power, until, isRestarting: false });
  switch (event) {
    case 'reclaim':
      change({ reclaimAt: now + noticeMs, reclaimTakesMs: goneAfterMs, until: now + noticeMs });
      break;
    case 'reap':
      machines.remove(machine, 'reaped');
      break;
    case 'powerOff':
      turn('stopping', now + POWER_OFF_MS);
      break;
    case 'suspend':
      change({ power: 'paused', isRestarting: false });
      break;
    case 'breakDown':
      turn('failed', null);
      break;
    case 'loss':
      machines.remove(machine, 'lost');
      break;
  }
}
