import type { Deps } from '../deps.ts';
import {
  balanceExhaustedMessage,
  lowBalanceMessage,
  volumesDeletedMessage,
  volumesFrozenMessage,
} from '../mail/messages.ts';
import { mailManagers } from '../mail/outbox.ts';
import type { BalanceWatch, TeamRecord } from '../model/people.ts';
import type { Transaction } from '../model/store.ts';
import { accrue } from './accrue.ts';
import { readBalance } from './balance-watch.ts';
import { takeReading } from './watch-team.ts';
import { dueNotice } from './watch-volumes.ts';
import { type Enforcement, ZeroBalance } from './zero-balance.ts';

type FormerDeps = Pick<Deps, 'store' | 'clock' | 'random' | 'log' | 'options'>;

/**
 * A billing job without scheduling: each round posts every open segment on the grid and reads every team. The mails and
 * ends of the real job are compared with its own.
 */
export class FormerAccrual {
  readonly #deps: FormerDeps;
  readonly #zeroBalance: ZeroBalance;
  #watched: Set<string> | undefined;

  constructor({ enforce, ...deps }: FormerDeps & { enforce: Enforcement }) {
    this.#deps = deps;
    this.#zeroBalance = new ZeroBalance(deps, enforce);
  }

  async run(): Promise<void> {
    const { store, clock } = this.#deps;
    const now = clock.now();
    this.#watched ??= new Set(
      (await store.read.teams.list()).filter(({ watch }) => !isQuiet(watch)).map(({ id }) => id),
    );
    const open = await store.read.ledger.openSegments({ limit: 10_000 });
    for (const { teamId } of open) this.#watched.add(teamId);
    await accrue(this.#deps, open, now);
    for (const teamId of [...this.#watched]) {
      const watch = await this.#watch(teamId, now);
      const { openSegments = 0 } = (await store.read.teams.load(teamId)) ?? {};
      if (isQuiet(watch) && openSegments === 0) this.#watched.delete(teamId);
      if (watch.exhaustedAt === null) continue;
      await store.transact((tx) => this.#mailNotice(tx, teamId, now));
      await this.#zeroBalance.check(store, teamId, watch.exhaustedAt, now);
    }
  }

  stop(): Promise<void> {
    return this.#zeroBalance.settled();
  }

  #watch(teamId: string, now: number): Promise<BalanceWatch> {
    const { options, store } = this.#deps;
    return store.transact(async (tx) => {
      const team = await teamOf(tx, teamId);
      const reading = await takeReading(tx, teamId, now);
      const { watch, news } = readBalance(team.watch, reading);
      await tx.teams.update({ ...team, watch });
      if (news !== null)
        await mailManagers(this.#deps, tx, team, {
          class: 'billing',
          kind: news.kind,
          dedupeKey: `${news.kind}:${teamId}:${now}`,
          ...(news.kind === 'low'
            ? lowBalanceMessage({ team, ...reading, minutes: news.minutes })
            : balanceExhaustedMessage({ team, ...reading, ...options.billing.zeroBalance })),
        });
      return watch;
    });
  }

  async #mailNotice(tx: Transaction, teamId: string, now: number): Promise<void> {
    const team = await teamOf(tx, teamId);
    const volumes = (await tx.volumes.ofTeam(teamId)).filter(({ status }) => status !== 'deleting');
    const notice = dueNotice(team.watch, this.#deps.options.billing.zeroBalance.volumes, now);
    if (notice === null || volumes.length === 0) return;
    const { deleteAt, noticeMs } = notice;
    const watch = { ...team.watch, volumesDeleteAt: deleteAt, volumesNoticeMs: noticeMs };
    await tx.teams.update({ ...team, watch });
    const { balanceMicroUsd } = await takeReading(tx, teamId, now);
    const mail = { team, volumes, balanceMicroUsd, deleteAt };
    await mailManagers(this.#deps, tx, team, {
      class: 'billing',
      kind: 'volumes',
      dedupeKey: `volumes:${teamId}:${deleteAt}:${noticeMs}`,
      ...(noticeMs === 0 ? volumesDeletedMessage(mail) : volumesFrozenMessage(mail)),
    });
  }
}

async function teamOf({ teams }: Pick<Transaction, 'teams'>, teamId: string): Promise<TeamRecord> {
  const team = await teams.byId(teamId);
  if (team === null) throw new Error(`there is no team ${teamId}`);
  return team;
}

/** Whether no mail is pending, so that readings can stop once nothing is billed. */
function isQuiet(watch: BalanceWatch): boolean {
  return Object.values(watch).every((value) => value === null);
}
