import { counted } from '../../../contract/counted.ts';
import { actionLink } from '../../../operator-kit/console/action-pages.ts';
import {
  clockTime,
  given,
  type Html,
  html,
  live,
  named,
  type Tone,
  table,
} from '../../../operator-kit/console/parts.ts';
import { declaredFacts } from '../../../operator-kit/console/view-pages.ts';
import { span, took } from '../../../operator-kit/views/values.ts';
import {
  destroyInstance,
  releaseInstance,
  restartInstanceAction,
  retryInstance,
  startInstanceAction,
  stopInstanceAction,
} from '../../operate/actions/instances.ts';
import type { Diagnosis } from '../../operate/views/diagnosis.ts';
import { describeBy, type EventView, readEvents } from '../../operate/views/events.ts';
import { type InstanceDetail, machineFacts, readInstance, workFacts } from '../../operate/views/instance.ts';
import { toneOf } from '../../operate/views/instances.ts';
import type { Page } from '../deps.ts';
import { statusBadge } from '../instance-parts.ts';

/** One instance: why it is in its state, what to do, and its history. */
export const instancePage: Page = async ({ store: { read } }, { params, now }) => {
  const { id = '' } = params;
  const instance = await readInstance(read, id, now);
  if (instance === null) {
    const history = await readEvents(read, id);
    return history.length === 0 ? null : forgotten(id, history);
  }
  const { status, name, diagnosis, work, volumes, events } = instance;
  const body = html`<div class="head" id="head" data-live><h1 class="mono">${id}</h1>${statusBadge(status)}
<span class="soft">${named(name)}</span></div>
${live('why', whyNotice(diagnosis), '')}
${status === 'DESTROYED' ? '' : html`<div class="row">${actions(instance)}</div>`}
<div class="columns">
${live(
  'work',
  html`<h2>Open work</h2>${
    work === null
      ? html`<p class="empty">None. An instance that is ${status} changes on request, or when the platform shows a different state.</p>`
      : declaredFacts(workFacts, instance, now)
  }`,
)}
${live('what', html`<h2>Details</h2>${declaredFacts(machineFacts, instance, now)}`)}
</div>
${live('timeline', timeline(events))}
${live('consoles', consolesOf(events), '')}
${volumes.length === 0 ? '' : live('volumes', html`<h2>Volumes</h2>${table(['id', 'state'], volumes, '')}`)}`;
  return { title: id, body };
};

function actions({ id: instanceId, status, work }: InstanceDetail): Html[] {
  const canRetry = work !== null || status === 'ONLINE' || status === 'STOPPED';
  const isHold = work === 'hold';
  return [
    ...(canRetry ? [actionLink(retryInstance, isHold ? 'Read its console' : 'Try now', { instanceId })] : []),
    ...(status === 'ONLINE' ? [actionLink(stopInstanceAction, 'Stop', { instanceId })] : []),
    ...(status === 'ONLINE' ? [actionLink(restartInstanceAction, 'Restart', { instanceId })] : []),
    ...(status === 'STOPPED' ? [actionLink(startInstanceAction, 'Start', { instanceId })] : []),
    ...(isHold ? [actionLink(releaseInstance, 'Release', { instanceId })] : []),
    actionLink(destroyInstance, 'Destroy', { instanceId }),
  ];
}

function whyNotice({ tone, headline, because, todo }: Diagnosis): Html {
  return html`<div class="notice ${tone}"><h2>${headline}</h2>
${because.map((sentence) => html`<p>${given(sentence)}</p>`)}
${
  todo.length === 0
    ? ''
    : html`<span class="label">What to do</span><ol>${todo.map((sentence) => html`<li>${given(sentence)}</li>`)}</ol>`
}</div>`;
}

function timeline(events: readonly EventView[]): Html {
  return html`<h2>History</h2><ol class="timeline">${events.map((event, index) =>
    moment(event, events[index - 1]),
  )}</ol>`;
}

function moment(event: EventView, before: EventView | undefined): Html {
  const { to, from, detail, calls, took_ms: tookMs, tries_between: between, by } = event;
  const at = Date.parse(event.at);
  const tone: Tone = to !== null ? toneOf({ status: to }) : detail === null ? 'none' : 'wait';
  const moved =
    to === null
      ? ''
      : html`${from === null ? '' : html`<span class="soft">${from} → </span>`}${statusBadge(to)} `;
  return html`<li class="${tone}"><div class="when">${clockTime(at)}${
    before === undefined ? '' : html`<br>+ ${span(at - Date.parse(before.at))}`
  }</div>
<div class="what"><div>${moved}<strong>${causeOf(event)}</strong>${
    tookMs === null ? '' : html` <span class="soft">took ${took(tookMs)}</span>`
  }${event.next === null || event.next === 'finish' ? '' : html` <span class="soft">then: ${event.next}</span>`}${by === null ? '' : html` <span class="soft">by ${given(describeBy(by))}</span>`}</div>
${detail === null ? '' : html`<div>${given(detail)}</div>`}
${between === 0 ? '' : html`<div class="soft">${counted(between, 'equal failure')} in between</div>`}
${calls.length === 0 ? '' : html`<ul class="calls">${calls.map(callLine)}</ul>`}</div></li>`;
}

function causeOf({ cause, attempt, from, to }: EventView): string {
  if (cause === 'request')
    return to !== null && from === null ? 'asked for' : (REQUESTS[to ?? ''] ?? 'asked');
  if (cause === 'attach') return 'for a volume that is attached while it is stopped';
  return attempt === null || attempt <= 1 ? cause : `${cause}, try ${attempt}`;
}

const REQUESTS: Readonly<Record<string, string>> = {
  STOPPING: 'stop requested',
  DESTROYING: 'delete requested',
};

const SUCCESSFUL: ReadonlySet<string> = new Set(['done', 'observed', 'gone', 'proved']);

function callLine({ call, outcome, took_ms: tookMs, detail }: EventView['calls'][number]): Html {
  const tone: Tone = outcome === 'pending' ? 'busy' : SUCCESSFUL.has(outcome) ? 'good' : 'bad';
  return html`<li class="${tone}"><code>${call}</code> <b>${outcome}</b> <span class="soft">${took(tookMs)}</span>${
    detail === undefined ? '' : html`: ${given(detail)}`
  }</li>`;
}

/** The last lines of the consoles that were read when its machine failed. */
function consolesOf(events: readonly EventView[]): Html[] {
  return events.flatMap(({ at, console }) =>
    console === null
      ? []
      : [
          html`<section class="card"><h2>Last lines of its console, ${clockTime(Date.parse(at))}</h2><pre tabindex="0">${console
            .split('\n')
            .map((line) => html`${given(line)}\n`)}</pre></section>`,
        ],
  );
}

/** The page of an instance whose tombstone is pruned. Its history still exists. */
function forgotten(id: string, events: readonly EventView[]) {
  return {
    title: id,
    body: html`<div class="head"><h1 class="mono">${id}</h1>${statusBadge('DESTROYED')}</div>
<div class="notice none"><p>It was destroyed, and its row is pruned. What happened to it is kept for as long as the configuration says.</p></div>
${live('timeline', timeline(events))}`,
  };
}
