import type { Deps } from '../deps.ts';
import { mailManagers } from '../mail/mail-managers.ts';
import { balanceExhaustedMessage, lowBalanceMessage } from '../mail/messages.ts';
import type { BalanceWatch } from '../records/people.ts';
import { readBalance } from './balance-watch.ts';
import { takeReading } from './take-reading.ts';

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
