import type { InstanceStatus } from '../../contract/instance.ts';
import { badge, type Html, html, type Tone } from '../../operator-kit/console/parts.ts';

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
