import type { InstanceStatus } from '../../contract/instance.ts';
import { badge, type Html, html } from '../../operator-kit/console/parts.ts';
import { toneOf } from '../operate/views/instances.ts';

export function statusBadge(status: InstanceStatus): Html {
  return badge(status, toneOf({ status }));
}

export function instanceLink(id: string): Html {
  return html`<a class="mono" href="/console/instances/${encodeURIComponent(id)}">${id}</a>`;
}
