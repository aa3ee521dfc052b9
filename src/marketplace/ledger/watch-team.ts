import type { Deps } from '../deps.ts';
import { balanceExhaustedMessage, lowBalanceMessage } from '../mail/messages.ts';
import { mailManagers } from '../mail/outbox.ts';
import type { BalanceReading, SegmentRecord } from '../model/ledger-records.ts';
import type { BalanceWatch } from '../model/people.ts';
import type { Reader } from '../model/store.ts';
import { realTimeBalance } from './balance.ts';
import { readBalance } from './balance-watch.ts';

/** What all open segments together cost, in micro-USD per hour. */
function burnRate(open: readonly { segment: SegmentRecord }[]): number {
  return open.reduce((sum, { segment }) => sum + segment.rateMicroUsdPerHour, 0);
}

/** What a team has now, and how fast it is used. @throws {ApiError} NOT_FOUND */
export async function takeReading(
  read: Pick<Reader, 'teams' | 'ledger' | 'discounts'>,
  teamId: string,
  at: number,
): Promise<BalanceReading> {
  const balanceMicroUsd = await realTimeBalance(read, teamId, at);
  return {
    at,
    balanceMicroUsd,
    burnMicroUsdPerHour: burnRate(await read.ledger.openSegmentsOfTeam(teamId)),
  };
}

/** Takes a reading of a team, mails what it tells, and returns the watch as it is then; null: there is no such team. */
export async function watchTeam(
  deps: Pick<Deps, 'store' | 'clock' | 'random' | 'options'>,
  teamId: string,
  now: number,
): Promise<BalanceWatch | null> {
  return deps.store.transact(async (tx) => {
    const team = await tx.teams.byId(teamId);
    if (team === null) return null;
    const reading = await takeReading(tx, teamId, now);
    const { watch, news } = readBalance(team.watch, reading);
    if (!isSame(watch, team.watch)) await tx.teams.update({ ...team, watch });
    if (news?.kind === 'low')
      await mailManagers(deps, tx, team, {
        ...{
          class: 'billing',
          kind: 'low_balance',
          dedupeKey: `low_balance:${team.id}:${news.minutes}:${now}`,
        },
        ...lowBalanceMessage({ team, ...reading, minutes: news.minutes }),
      });
    if (news?.kind === 'exhausted')
      await mailManagers(deps, tx, team, {
        class: 'billing',
        kind: 'balance_exhausted',
        dedupeKey: `balance_exhausted:${team.id}:${now}`,
        ...balanceExhaustedMessage({ team, ...reading, ...deps.options.billing.zeroBalance }),
      });
    return watch;
  });
}

function isSame(a: BalanceWatch, b: BalanceWatch): boolean {
  return (Object.keys(a) as (keyof BalanceWatch)[]).every((name) => a[name] === b[name]);
}
