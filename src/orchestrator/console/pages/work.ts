import {
  ago,
  badge,
  type Column,
  count,
  given,
  html,
  live,
  table,
} from '../../../operator-kit/console/parts.ts';
import type { OpenWork } from '../../model/work.ts';
import { wordsOfStep } from '../../operate/views/diagnosis.ts';
import type { Page } from '../deps.ts';
import { instanceLink, phaseOf } from '../instance-parts.ts';

const SHOWN = 200;

/** The unfinished steps, longest waiting first. */
export const workPage: Page = async ({ store: { read } }, { now }) => {
  const [open, backlog] = await Promise.all([read.work.list(SHOWN), read.work.backlog()]);
  const more = backlog.count - open.length;
  return {
    title: 'Work',
    body: html`<div class="head"><h1>Open work</h1><span class="soft">${count(backlog.count)} steps, longest waiting first</span></div>
${live(
  'work',
  html`${table(columnsAt(now), open, 'No open work: every instance and volume is in its intended state.')}${
    more > 0 ? html`<p class="soft">… and ${count(more)} more</p>` : ''
  }`,
)}`,
  };
};

function columnsAt(now: number): readonly Column<OpenWork>[] {
  return [
    {
      head: 'Of',
      cell: ({ resourceId, resourceKind }) =>
        resourceKind === 'instance'
          ? instanceLink(resourceId)
          : html`<span class="mono">${resourceId}</span>`,
    },
    {
      head: 'Step',
      cell: ({ kind, lastError, progress }) =>
        html`${kind} <span class="soft small">${wordsOfStep(kind)}</span>${
          progress === null ? '' : html`<span class="why">${phaseOf(progress, now)}</span>`
        }${lastError === null ? '' : html`<span class="why">${given(lastError)}</span>`}`,
    },
    { head: 'Platform', cell: ({ platform }) => platform },
    { head: 'Try', cell: ({ attempt }) => attempt, isNumber: true },
    { head: 'Waits since', cell: ({ waitsSince }) => (waitsSince > now ? '' : ago(waitsSince, now)) },
    { head: 'Next try', cell: (work) => nextTry(work, now) },
    { head: 'Deadline', cell: ({ deadlineAt }) => ago(deadlineAt, now) },
  ];
}

function nextTry({ isHeld, leaseUntil, notBefore }: OpenWork, now: number) {
  if (isHeld) return badge('held', 'bad');
  if (leaseUntil > now) return badge('runs now', 'busy');
  return notBefore <= now ? 'due' : ago(notBefore, now);
}
