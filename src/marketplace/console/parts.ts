import { badge, type Html, html, named, type Tone } from '../../operator-kit/console/parts.ts';
import type { DeploymentStatus } from '../contract/deployment.ts';
import type { ProviderRow } from '../operate/views/providers.ts';

const TONES: Readonly<Record<DeploymentStatus, Tone>> = {
  deploying: 'busy',
  running: 'good',
  stopped: 'none',
  failed: 'bad',
  terminated: 'none',
  'terminated-provider': 'wait',
};

export function toneOf(status: DeploymentStatus): Tone {
  return TONES[status];
}

export function statusBadge(status: DeploymentStatus): Html {
  return badge(status, toneOf(status));
}

const STATES: Readonly<Record<ProviderRow['state'], readonly [Tone, string]>> = {
  ok: ['good', 'answers'],
  stale: ['wait', 'stale'],
  failing: ['bad', 'failing'],
  not_configured: ['bad', 'not configured'],
  unknown: ['wait', 'unknown'],
};

export function providerBadge(state: ProviderRow['state']): Html {
  const [tone, words] = STATES[state];
  return badge(words, tone);
}

/** A badge for how long a balance lasts, coloured by urgency. */
export function hoursLeft(hours: number | null): Html | '' {
  if (hours === null) return '';
  const text = hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} d`;
  return badge(text, hours < 1 ? 'bad' : hours < 24 ? 'wait' : 'good');
}

export function deploymentLink(id: string): Html {
  return html`<a class="mono" href="/console/deployments/${encodeURIComponent(id)}">${id}</a>`;
}

export function billLink(id: string, text: string): Html {
  return html`<a href="/console/bills/${encodeURIComponent(id)}">${text}</a>`;
}

export function teamLink(id: string, name = id): Html {
  return html`<a href="/console/teams/${encodeURIComponent(id)}">${named(name)}</a>`;
}

/** A link to the subject of an audit log row. */
export function subjectLink(subject: string): Html | '' {
  if (subject.startsWith('dep-')) return deploymentLink(subject);
  return subject.startsWith('team-') ? teamLink(subject) : named(subject);
}
