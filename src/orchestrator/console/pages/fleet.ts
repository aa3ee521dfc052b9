import { toDollars } from '../../../contract/values.ts';
import type { AlarmRow } from '../../../operator-kit/alarms/operations.ts';
import { figureCards, rangeLinks, rangeOf } from '../../../operator-kit/console/figure-parts.ts';
import {
  badge,
  count,
  figure,
  type Html,
  html,
  live,
  shareBar,
  table,
} from '../../../operator-kit/console/parts.ts';
import { listTable } from '../../../operator-kit/console/view-pages.ts';
import { span } from '../../../operator-kit/views/values.ts';
import { causeOf, type Outcome } from '../../model/history.ts';
import { markOf } from '../../model/marks.ts';
import type { PlacedInstances } from '../../model/store.ts';
import { alarmsView } from '../../operate/alarms.ts';
import { figures as overTime } from '../../operate/figures/figures.ts';
import { type PlacementView, readCapacity } from '../../operate/views/capacity.ts';
import { toneOf } from '../../operate/views/instances.ts';
import type { ConsoleDeps, Page } from '../deps.ts';
import { instanceLink } from '../instance-parts.ts';

const HOURS = 24;
/** How many outcomes are searched. */
const EVENTS = 20_000;
const ALARMS_SHOWN = 6;
const PLACEMENTS_SHOWN = 12;
const RUNNING = ['PROVISIONING', 'ONLINE', 'STOPPING'];
const FIRST = ['ONLINE', 'PROVISIONING', 'STOPPED', 'ERROR'] as const;

/** An overview of the whole fleet. */
export const fleetPage: Page = async (deps, { now, query }) => {
  const { store } = deps;
  const range = rangeOf(query);
  const cards = (...specs: Parameters<typeof figureCards>[0]) =>
    figureCards(specs, { reader: store.read.figures, range, now });
  const [placed, { alarms }, backlog, found, platforms, { placements }] = await Promise.all([
    store.read.instances.countByPlacement(),
    alarmsView.read(deps, {}),
    store.read.work.backlog(),
    store.read.history.outcomes({ since: now - HOURS * 3_600_000, limit: EVENTS }),
    readPlatforms(deps),
    readCapacity(store.read, { ...deps, now }),
  ]);
  const outcomes = summarise(found);
  return {
    title: 'Fleet',
    body: html`<div class="head"><h1>Fleet</h1>${rangeLinks('/console', range)}</div>
${live('figures', figures(placed, outcomes, backlog, now), 'figures')}
${await cards(overTime.units, overTime.earned)}
<div class="columns">
${live('wrong', html`<h2>Open alarms</h2>${wrong(alarms, now)}`)}
${live('platforms', html`<h2>Platforms</h2>${platformList(platforms, now)}`)}
</div>
${await cards(overTime.creates, overTime.onlineTime, overTime.failures)}
${live('outcomes', html`<h2>Creates, ${HOURS} hours: ${count(outcomes.online)} came ONLINE, ${count(outcomes.failed)} failed</h2>${causes(outcomes)}`)}
${live('capacity', html`<h2>Sold, stopped and free: the fullest offers and regions</h2>${capacity(placements, placed)}`)}`,
  };
};

type Platforms = Awaited<ReturnType<typeof readPlatforms>>;

async function readPlatforms({ states, store: { read } }: ConsoleDeps) {
  return Promise.all(
    [...states].map(async ([name, { health, losses, driver }]) => ({
      name,
      driver: driver.manifest.name,
      isUp: health.isUp,
      isSuspect: health.isSuspect,
      isTaken: health.isTaken,
      held: losses.held,
      downSince: await read.marks.get(markOf(name, 'platform_down_since')),
    })),
  );
}

function figures(
  placed: readonly PlacedInstances[],
  { p50, p95 }: Outcomes,
  backlog: { count: number; oldestDueAt: number | null },
  now: number,
): Html {
  const countOf = (status: string): number =>
    placed.filter((entry) => entry.status === status).reduce((sum, entry) => sum + entry.count, 0);
  const all = placed.reduce((sum, entry) => sum + entry.count, 0);
  const others = all - FIRST.reduce((sum, status) => sum + countOf(status), 0);
  const earned = placed
    .filter(({ status }) => status === 'ONLINE')
    .reduce((sum, { priceMicroUsdPerHour }) => sum + priceMicroUsdPerHour, 0);
  const isLate = backlog.oldestDueAt !== null && now - backlog.oldestDueAt > 60_000;
  const waits =
    backlog.oldestDueAt !== null && backlog.oldestDueAt < now
      ? `oldest waits ${span(now - backlog.oldestDueAt)}`
      : 'none waits';
  return html`${FIRST.map((status) =>
    figure(count(countOf(status)), status, {
      href: `/console/instances?status=${status}`,
      tone: countOf(status) > 0 ? toneOf({ status }) : 'none',
    }),
  )}
${figure(count(others), 'other states', { href: '/console/instances' })}
${figure(count(backlog.count), `open steps, ${waits}`, { href: '/console/work', tone: isLate ? 'wait' : undefined })}
${figure(p50 === undefined ? '–' : span(p50), `p50 to ONLINE${p95 === undefined ? '' : `; p95 ${span(p95)}`}`)}
${figure(toDollars(earned), 'per hour, ONLINE')}`;
}

/** What fits beside the platforms. */
const ALARM_FIELDS = ['kind', 'subject', 'since', 'text'];

function wrong(alarms: readonly AlarmRow[], now: number): Html {
  const open = alarms.filter(({ acknowledged_by: by }) => by === null);
  const first = [...open, ...alarms.filter((alarm) => !open.includes(alarm))].slice(0, ALARMS_SHOWN);
  const more = alarms.length - first.length;
  return html`${listTable(alarmsView, first, now, ALARM_FIELDS)}${more > 0 ? html`<p><a href="/console/alarms">${more} more</a></p>` : ''}`;
}

function platformList(platforms: Platforms, now: number): Html {
  return table(
    [
      { head: 'Platform', cell: ({ name }) => html`<a href="/console/platforms/${name}">${name}</a>` },
      { head: 'Driver', cell: ({ driver }) => driver },
      { head: 'State', cell: (platform) => platformState(platform, now) },
    ],
    platforms,
    'No platform is configured.',
  );
}

function platformState(
  {
    isUp,
    isSuspect,
    isTaken,
    downSince,
    held,
  }: Pick<Platforms[number], 'isUp' | 'isSuspect' | 'isTaken' | 'downSince' | 'held'>,
  now: number,
): Html {
  const since = downSince === null ? '' : html` <span class="soft">for ${span(now - downSince)}</span>`;
  const state = isUp
    ? badge('answers', 'good')
    : html`${badge(`frozen: ${isTaken ? 'another writer' : isSuspect ? 'machines are missing' : 'does not answer'}`, 'bad')}${since}`;
  return held === 0 ? state : html`${state} ${badge(`${held} losses held`, 'bad')}`;
}

function causes({ causes: found }: Outcomes): Html {
  return table(
    [
      { head: 'Cause', cell: ({ cause }) => html`<code>${cause}</code>` },
      { head: 'How many', cell: (one) => one.count, isNumber: true },
      { head: 'The last', cell: ({ anId }) => instanceLink(anId) },
    ],
    found.slice(0, ALARMS_SHOWN),
    'None failed.',
  );
}

function capacity(placements: readonly PlacementView[], placed: readonly PlacedInstances[]): Html {
  const rows = placements.map(({ offer, region, units, available: free }) => {
    const countOf = (statuses: readonly string[]): number =>
      placed
        .filter(
          (entry) => entry.offerId === offer && entry.region === region && statuses.includes(entry.status),
        )
        .reduce((sum, entry) => sum + entry.count, 0);
    const [sold, stopped] = [countOf(RUNNING), countOf(['STOPPED'])];
    return { offer, region, sold, stopped, free, withheld: Math.max(0, units - sold - stopped - free) };
  });
  const fullest = rows.toSorted((a, b) => share(b) - share(a)).slice(0, PLACEMENTS_SHOWN);
  return html`${table(
    [
      {
        head: 'Offer',
        cell: ({ offer }) => html`<a href="/console/offers/${encodeURIComponent(offer)}">${offer}</a>`,
      },
      { head: 'Region', cell: ({ region }) => region },
      {
        head: 'Units',
        cell: ({ sold, stopped, free, withheld }) =>
          shareBar(
            [
              { kind: 'a', value: sold, name: 'sold' },
              { kind: 'b', value: stopped, name: 'stopped' },
              { kind: 'c', value: free, name: 'free' },
              { kind: 'd', value: withheld, name: 'not for sale' },
            ],
            `${sold} sold, ${stopped} stopped, ${free} free, ${withheld} not for sale`,
          ),
      },
      { head: 'Sold', cell: ({ sold }) => count(sold), isNumber: true },
      { head: 'Stopped', cell: ({ stopped }) => count(stopped), isNumber: true },
      {
        head: 'Free',
        cell: ({ free }) => (free > 0 ? count(free) : html`<a href="/console/capacity">none</a>`),
        isNumber: true,
      },
    ],
    fullest,
    'The catalog has no offers.',
  )}<p class="key"><span class="a">sold</span><span class="b">stopped</span><span>free</span><span class="d">not for sale</span>
<a href="/console/capacity">all places (${rows.length}), and why what is unavailable is</a></p>`;
}

/** The taken share of the catalog's units, including units that cannot be sold now. */
function share({ sold, stopped, free, withheld }: Units): number {
  return (sold + stopped) / Math.max(1, sold + stopped + free + withheld);
}

interface Units {
  sold: number;
  stopped: number;
  free: number;
  withheld: number;
}

/** How creates ended in the last hours. */
interface Outcomes {
  /** Milliseconds from the create to ONLINE. Undefined if no create came ONLINE. */
  p50: number | undefined;
  p95: number | undefined;
  online: number;
  failed: number;
  /** Causes of failure, most frequent first. */
  causes: { cause: string; count: number; anId: string }[];
}

function summarise(found: readonly Outcome[]): Outcomes {
  const times: number[] = [];
  const causes = new Map<string, { count: number; anId: string }>();
  const ended = { online: 0, failed: 0 };
  for (const outcome of found.toReversed()) {
    const { at, fromStatus, toStatus, instance, instanceId } = outcome;
    if (fromStatus !== 'PROVISIONING') continue;
    if (toStatus === 'ONLINE') {
      ended.online++;
      if (instance !== null) times.push(at - instance.createdAt);
    } else if (toStatus === 'ERROR') {
      ended.failed++;
      const cause = causeOf(outcome);
      causes.set(cause, { count: (causes.get(cause)?.count ?? 0) + 1, anId: instanceId });
    }
  }
  times.sort((a, b) => a - b);
  return {
    p50: quantile(times, 0.5),
    p95: quantile(times, 0.95),
    ...ended,
    causes: [...causes]
      .map(([cause, { count, anId }]) => ({ cause, count, anId }))
      .sort((a, b) => b.count - a.count),
  };
}

/** The smallest value that at least this share of the values does not exceed. */
function quantile(sorted: readonly number[], share: number): number | undefined {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}
