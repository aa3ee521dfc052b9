import type { AlarmKey } from '../../../operator-kit/alarms/model.ts';
import { alarmsPageOf } from '../../../operator-kit/console/alarms-page.ts';
import { type Html, html, named } from '../../../operator-kit/console/parts.ts';
import * as operations from '../../operate/alarms.ts';
import { instanceLink } from '../instance-parts.ts';

export const alarmsPage = alarmsPageOf(operations, subjectOf);

/** The subject, with a link to its page. */
export function subjectOf({ kind, subject, platform }: AlarmKey & { platform: string | null }): Html | '' {
  if (subject.startsWith('inst-')) return instanceLink(subject);
  if (kind === 'orphan_machine' || kind === 'orphan_volume' || kind === 'row_lost')
    return html`<a href="/console/orphans" class="mono">${subject}</a>`;
  if (platform !== null) return html`<a href="/console/platforms">${named(subject)}</a>`;
  return named(subject);
}
