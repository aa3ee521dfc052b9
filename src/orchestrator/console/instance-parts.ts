import type { InstanceStatus } from '../../contract/instance.ts';
import {
  ago,
  badge,
  clockTime,
  given,
  type Html,
  html,
  type Tone,
} from '../../operator-kit/console/parts.ts';
import { isOverdue, type WorkProgress } from '../model/work.ts';

const TONES: Readonly<Record<InstanceStatus, Tone>> = {
  PROVISIONING: 'busy',
  ONLINE: 'good',
  STOPPING: 'busy',
  STOPPED: 'none',
  OFFLINE: 'wait',
  DESTROYING: 'busy',
  DESTROYED: 'none',
  ERROR: 'bad',
};

export function toneOf(status: InstanceStatus): Tone {
  return TONES[status];
}

export function statusBadge(status: InstanceStatus): Html {
  return badge(status, toneOf(status));
}

export function instanceLink(id: string): Html {
  return html`<a class="mono" href="/console/instances/${encodeURIComponent(id)}">${id}</a>`;
}

/** What the platform is doing in a step, since when, and when it is overdue. */
export function phaseOf(progress: WorkProgress | null, now: number): Html | '' {
  if (progress === null) return '';
  const { phase, since, deadlineAt = null } = progress;
  const due = isOverdue(progress, now)
    ? html` ${badge('overdue', 'bad')} since ${clockTime(progress.deadlineAt)}`
    : html`${deadlineAt === null ? '' : html`, due ${ago(deadlineAt, now)}`}`;
  return html`${given(phase)}, begun ${ago(since, now)}${due}`;
}
