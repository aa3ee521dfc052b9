import { notFound } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { changesAfter, type Discounts } from '../discounts/price.ts';
import { balanceExhaustedMessage, lowBalanceMessage } from '../mail/messages.ts';
import { mailManagers } from '../mail/outbox.ts';
import type { BalanceReading } from '../model/ledger-records.ts';
import type { BilledSegment } from '../model/ledger-store.ts';
import type { BalanceWatch, TeamRecord } from '../model/people.ts';
import type { Reader, Transaction } from '../model/store.ts';
import { readingOf } from './balance.ts';
import { type BalanceNews, nextReadingAt, readBalance } from './balance-watch.ts';
import { hasChanged } from './post-due.ts';
import { priceChange } from './price-change.ts';
import { watchVolumes } from './watch-volumes.ts';
import { stepDueAt } from './zero-balance.ts';

/**
 * A check is scheduled at most this far ahead: graces may be reconfigured, and the store treats a time far ahead as the
 * mistake of a wrong clock.
 */
const LOOK_AGAIN_MS = 3_600_000;

type WatchDeps = Pick<Deps, 'clock' | 'random' | 'options'>;

/** The team's balance and its rate of decrease at `at`. @throws {ApiError} NOT_FOUND */
export async function takeReading(
  read: Pick<Reader, 'teams' | 'ledger' | 'discounts'>,
  teamId: string,
  at: number,
): Promise<BalanceReading> {
  const team = await read.teams.byId(teamId);
  if (team === null) throw notFound('team');
  const open = await read.ledger.openSegmentsOfTeam(teamId);
  return readingOf(team, open, await read.discounts.ofTeam(teamId), at);
}

/** Mails if needed and schedules the next check. Returns the updated watch, or null if there is no such team. */
export async function watchTeam(
  deps: WatchDeps & Pick<Deps, 'store'>,
  teamId: string,
  now: number,
): Promise<BalanceWatch | null> {
  return deps.store.transact(async (tx) => {
    const team = await tx.teams.byId(teamId);
    if (team === null) return null;
    const open = await tx.ledger.billedSegmentsOfTeam(teamId);
    const discounts = open.length === 0 ? [] : await tx.discounts.ofTeam(teamId);
    const reading = readingOf(team, open, discounts, now);
    const read = readBalance(team.watch, reading);
    if (read.news !== null) await mailNews(deps, tx, team, reading, read.news);
    const readAt = nextCheckOf(read.watch, team, open, discounts, now);
    const { watch, nextAt } = await watchExhausted(deps, tx, { ...team, watch: read.watch }, reading);
    if (!isSame(watch, team.watch)) await tx.teams.update({ ...team, watch });
    const at = Math.max(now, Math.min(readAt, nextAt));
    // Configured graces and notices may end in a fraction of a millisecond.
    const nextCheckAt = Math.ceil(Math.min(at, now + LOOK_AGAIN_MS));
    await tx.teams.scheduleCheck(teamId, Number.isFinite(at) ? nextCheckAt : null);
    return watch;
  });
}

/** When the watch of a team with credit may change next, however far ahead. */
export async function watchChangesAt(
  { ledger, discounts }: Pick<Reader, 'ledger' | 'discounts'>,
  team: TeamRecord,
  now: number,
): Promise<number> {
  const open = await ledger.billedSegmentsOfTeam(team.id);
  return nextCheckOf(team.watch, team, open, await discounts.ofTeam(team.id), now);
}

/** If unconfirmed time or an unbilled price change may already change the watch, the team is checked every round. */
function nextCheckOf(
  watch: BalanceWatch,
  team: TeamRecord,
  open: readonly BilledSegment[],
  discounts: Discounts,
  now: number,
): number {
  const confirmed = open.map(({ segment }) => ({ segment, confirmedUntil: null }));
  const least = readingOf(team, confirmed, discounts, now);
  const readAt = nextReadingAt(watch, least, open.length);
  if (open.length === 0) return readAt;
  const isPriceOpen = ({ segment }: BilledSegment) => priceChange(segment, discounts, now + 1) !== null;
  if (open.some((billed) => isPriceOpen(billed) || hasChanged(billed, discounts, now))) return now;
  const [changesAt = Number.POSITIVE_INFINITY] = changesAfter(discounts, now);
  return Math.min(readAt, changesAt);
}

/** If the balance is used up, sends the mails about volumes and computes when the next stop or deletion is due. */
async function watchExhausted(
  deps: WatchDeps,
  tx: Transaction,
  team: TeamRecord,
  reading: BalanceReading,
): Promise<{ watch: BalanceWatch; nextAt: number }> {
  const { exhaustedAt } = team.watch;
  if (exhaustedAt === null) return { watch: team.watch, nextAt: Number.POSITIVE_INFINITY };
  const volumes = await watchVolumes(deps, tx, team, reading);
  const deployments = await tx.deployments.list({ teamIds: [team.id], statuses: ['running', 'stopped'] });
  const { zeroBalance } = deps.options.billing;
  const steps = deployments.map((deployment) => stepDueAt(deployment, exhaustedAt, zeroBalance));
  const nextAt = Math.min(volumes.nextAt, ...steps);
  return { watch: volumes.watch, nextAt };
}

async function mailNews(
  deps: WatchDeps,
  tx: Transaction,
  team: TeamRecord,
  reading: BalanceReading,
  news: BalanceNews,
): Promise<void> {
  const mail =
    news.kind === 'low'
      ? {
          kind: 'low_balance',
          dedupeKey: `low_balance:${team.id}:${news.minutes}:${reading.at}`,
          ...lowBalanceMessage({ team, ...reading, minutes: news.minutes }),
        }
      : {
          kind: 'balance_exhausted',
          dedupeKey: `balance_exhausted:${team.id}:${reading.at}`,
          ...balanceExhaustedMessage({ team, ...reading, ...deps.options.billing.zeroBalance }),
        };
  await mailManagers(deps, tx, team, { class: 'billing', ...mail });
}

function isSame(a: BalanceWatch, b: BalanceWatch): boolean {
  return (Object.keys(a) as (keyof BalanceWatch)[]).every((name) => a[name] === b[name]);
}
