import { counted } from '../../../contract/counted.ts';
import { toDollars } from '../../../contract/values.ts';
import type { AlarmRecord } from '../../../operator-kit/alarms/model.ts';
import { actionLink } from '../../../operator-kit/console/action-pages.ts';
import {
  ago,
  clockTime,
  facts,
  given,
  type Html,
  html,
  live,
  named,
  type Tone,
  table,
  took,
} from '../../../operator-kit/console/parts.ts';
import { span } from '../../../operator-kit/views/values.ts';
import { type HistoryEvent, type PlatformCall, triesBetween } from '../../model/history.ts';
import type { InstanceRecord } from '../../model/records.ts';
import type { Work } from '../../model/work.ts';
import { destroyInstance, releaseInstance, retryInstance } from '../../operate/actions/instances.ts';
import { type Diagnosis, diagnose, readTrouble, wordsOfStep } from '../../operate/views/diagnosis.ts';
import { createdEvent, describeBy } from '../../operate/views/instances.ts';
import type { Page } from '../deps.ts';
import { phaseOf, statusBadge, toneOf } from '../instance-parts.ts';

/** One instance: why it is in its state, what to do, and its history. */
export const instancePage: Page = async ({ store: { read } }, { params, now }) => {
  const { id = '' } = params;
  const record = await read.instances.byId(id);
  const history = await read.history.of(id);
  if (record === null) return history.length === 0 ? null : forgotten(id, history);
  const [work, account, trouble, attachments] = await Promise.all([
    read.work.of(id),
    read.credentials.accountById(record.accountId),
    readTrouble(read, record),
    read.volumes.attachmentsOfInstance(id),
  ]);
  const events = [createdEvent(record), ...history];
  const found = diagnose({ record, work, events, ...trouble }, now);
  const body = html`<div class="head" id="head" data-live><h1 class="mono">${id}</h1>${statusBadge(record.status)}
<span class="soft">${named(record.name)}</span></div>
${live('why', whyNotice(found), '')}
${record.status === 'DESTROYED' ? '' : html`<div class="row">${actions(record, work)}</div>`}
<div class="columns">
${live('work', openWork(work, record, trouble.alarms, now))}
${live('what', whatItIs(record, account?.name ?? record.accountId, now))}
</div>
${live('timeline', timeline(events))}
${live('consoles', consolesOf(events), '')}
${
  attachments.length === 0
    ? ''
    : live(
        'volumes',
        html`<h2>Volumes</h2>${table(
          [
            { head: 'Volume', cell: ({ volumeId }) => html`<span class="mono">${volumeId}</span>` },
            { head: 'State', cell: ({ state }) => state },
          ],
          attachments,
          '',
        )}`,
      )
}`;
  return { title: id, body };
};

function actions({ id: instanceId, status }: InstanceRecord, work: Work | null): Html[] {
  const canRetry = work !== null || status === 'ONLINE' || status === 'STOPPED';
  const isHold = work?.kind === 'hold';
  return [
    ...(canRetry ? [actionLink(retryInstance, isHold ? 'Read its console' : 'Try now', { instanceId })] : []),
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

function openWork(
  work: Work | null,
  { status }: InstanceRecord,
  alarms: readonly AlarmRecord[],
  now: number,
): Html {
  if (work === null)
    return html`<h2>Open work</h2><p class="empty">None. An instance that is ${status} changes on request, or when the platform shows a different state.</p>`;
  const failing = alarms.find(({ kind }) => kind === 'step_failing');
  return html`<h2>Open work</h2>${facts([
    ['Step', html`${work.kind}: ${wordsOfStep(work.kind)}`],
    ['Try', work.attempt],
    ['Next try', work.notBefore <= now ? 'now' : ago(work.notBefore, now)],
    ['Deadline', work.deadlineAt === null ? 'none' : ago(work.deadlineAt, now)],
    ['Fails since', failing === undefined ? '' : ago(failing.since, now)],
    ['Acknowledged by', given(failing?.acknowledgedBy)],
    ['On the platform', phaseOf(work.progress, now)],
    ['Held', work.isHeld ? 'yes: over the cap on losses' : ''],
    ['Last problem', given(work.lastError)],
  ])}`;
}

function whatItIs(record: InstanceRecord, account: string, now: number): Html {
  const { endpoint, spec } = record;
  const gpus = spec.gpuCount === undefined ? '' : `${spec.gpuCount} × ${spec.gpuType ?? 'GPU'}`;
  return html`<h2>Details</h2>${facts([
    ['Offer', record.offerId],
    ['Region', record.region],
    [
      'Platform and host',
      html`${record.platform}${record.host === null ? '' : html` / ${named(record.host)}`}`,
    ],
    ['Account', named(account)],
    ['Created', html`${clockTime(record.createdAt)} <span class="soft">${ago(record.createdAt, now)}</span>`],
    [
      'SSH',
      endpoint === null
        ? 'no address yet'
        : html`<code>${endpoint.sshUsername}@${endpoint.publicIp}:${endpoint.sshPort}</code>`,
    ],
    [
      'Machine',
      [`${spec.vcpus} vCPU`, `${spec.memoryGb} GB`, `${spec.storageGb} GB disk`, gpus]
        .filter(Boolean)
        .join(', '),
    ],
    ['Image', given(spec.image)],
    ['Price', `${toDollars(record.priceMicroUsdPerHour)} per hour, ${spec.instanceType}`],
    ['Owner ref, its name on the platform', html`<code>${record.ownerRef}</code>`],
    ['Request', spec.requestId === undefined ? '' : html`<code>${spec.requestId}</code>`],
    ['Host key', record.hostKeyFingerprint === null ? '' : html`<code>${record.hostKeyFingerprint}</code>`],
  ])}`;
}

function timeline(events: readonly HistoryEvent[]): Html {
  return html`<h2>History</h2><ol class="timeline">${events.map((event, index) =>
    moment(event, events[index - 1]),
  )}</ol>`;
}

function moment(event: HistoryEvent, before: HistoryEvent | undefined): Html {
  const { at, toStatus, fromStatus, detail, calls, tookMs, by } = event;
  const between = triesBetween(before, event);
  const tone: Tone = toStatus !== null ? toneOf(toStatus) : detail === null ? 'none' : 'wait';
  const moved =
    toStatus === null
      ? ''
      : html`${fromStatus === null ? '' : html`<span class="soft">${fromStatus} → </span>`}${statusBadge(toStatus)} `;
  return html`<li class="${tone}"><div class="when">${clockTime(at)}${
    before === undefined ? '' : html`<br>+ ${span(at - before.at)}`
  }</div>
<div class="what"><div>${moved}<strong>${causeOf(event)}</strong>${
    tookMs === null ? '' : html` <span class="soft">took ${took(tookMs)}</span>`
  }${event.next === null || event.next === 'finish' ? '' : html` <span class="soft">then: ${event.next}</span>`}${by === null ? '' : html` <span class="soft">by ${given(describeBy(by))}</span>`}</div>
${detail === null ? '' : html`<div>${given(detail)}</div>`}
${between === 0 ? '' : html`<div class="soft">${counted(between, 'equal failure')} in between</div>`}
${calls.length === 0 ? '' : html`<ul class="calls">${calls.map(callLine)}</ul>`}</div></li>`;
}

function causeOf({ cause, attempt, fromStatus, toStatus }: HistoryEvent): string {
  if (cause === 'request')
    return toStatus !== null && fromStatus === null ? 'asked for' : (REQUESTS[toStatus ?? ''] ?? 'asked');
  if (cause === 'attach') return 'for a volume that is attached while it is stopped';
  return attempt === null || attempt <= 1 ? cause : `${cause}, try ${attempt}`;
}

const REQUESTS: Readonly<Record<string, string>> = {
  STOPPING: 'stop requested',
  DESTROYING: 'delete requested',
};

const SUCCESSFUL: ReadonlySet<string> = new Set(['done', 'observed', 'gone', 'proved']);

function callLine({ call, outcome, tookMs, detail }: PlatformCall): Html {
  const tone: Tone = outcome === 'pending' ? 'busy' : SUCCESSFUL.has(outcome) ? 'good' : 'bad';
  return html`<li class="${tone}"><code>${call}</code> <b>${outcome}</b> <span class="soft">${took(tookMs)}</span>${
    detail === undefined ? '' : html`: ${given(detail)}`
  }</li>`;
}

/** The last lines of the consoles that were read when its machine failed. */
function consolesOf(events: readonly HistoryEvent[]): Html[] {
  return events.flatMap(({ at, console }) =>
    console === null
      ? []
      : [
          html`<section class="card"><h2>Last lines of its console, ${clockTime(at)}</h2><pre tabindex="0">${console
            .split('\n')
            .map((line) => html`${given(line)}\n`)}</pre></section>`,
        ],
  );
}

/** The page of an instance whose tombstone is pruned. Its history still exists. */
function forgotten(id: string, events: readonly HistoryEvent[]) {
  return {
    title: id,
    body: html`<div class="head"><h1 class="mono">${id}</h1>${statusBadge('DESTROYED')}</div>
<div class="notice none"><p>It was destroyed, and its row is pruned. What happened to it is kept for as long as the configuration says.</p></div>
${live('timeline', timeline(events))}`,
  };
}
