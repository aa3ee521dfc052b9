import { Command } from 'commander';
import { assignDiscount } from '../../marketplace/discounts/discounts.ts';
import { findTeam } from '../../marketplace/model/own-rows.ts';
import type { DiscountRecord } from '../../marketplace/model/people.ts';
import { endDiscount } from '../../marketplace/operate/commands.ts';
import { auditedLookup } from '../../operator-kit/audit.ts';
import { localActor } from '../local-actor.ts';
import { parseCount, parseTime } from '../parse.ts';
import {
  type Column,
  type ListFlags,
  type OutputFlag,
  printDone,
  printRecords,
  toFields,
  toJsonTime,
  toTime,
  withList,
  withOutput,
} from '../print-records.ts';
import { auditedHere, type CommandDeps, onMarketplaceDatabase } from './database.ts';

/** `berth marketplace discounts` (M: Offer: admin-assigned discounts). */
export function discountsCommand(): Command {
  const discounts = new Command('discounts');
  withOutput(onMarketplaceDatabase(discounts.command('set <team> <percentage>'), setDiscount))
    .description('give a team a discount of 5 to 50 percent')
    .option('--from <when>', 'in 30m, 2h or 7d, or at an RFC 3339 time; default now')
    .option('--until <when>', 'default: until it is ended');
  withList(
    onMarketplaceDatabase(
      discounts.command('ls [team]'),
      async ({ store: { read } }, idOrSlug: string | undefined, flags: ListFlags) => {
        const records =
          idOrSlug === undefined
            ? await read.discounts.list()
            : await read.discounts.ofTeam((await findTeam(read.teams, idOrSlug)).id);
        printRecords(records, discountColumns, flags, 'There is no such discount.');
      },
    ),
  ).description('list the discounts of a team, or of all; those that are over too');
  withOutput(
    onMarketplaceDatabase(discounts.command('end <id>'), async (deps, id: string, flags: OutputFlag) => {
      const { until } = await endDiscount.perform(deps, localActor(), { discountId: id });
      printDone(flags, { id, until }, `Discount ${id} ends at ${until}.`);
    }),
  ).description('end an assigned discount now');
  return discounts;
}

async function setDiscount(
  deps: CommandDeps,
  idOrSlug: string,
  percentage: string,
  flags: OutputFlag & { from?: string; until?: string },
): Promise<void> {
  const { from, until } = flags;
  const now = deps.clock.now();
  const { id: teamId } = await auditedLookup(
    deps,
    localActor(),
    { action: 'discount.set', subject: idOrSlug },
    () => findTeam(deps.store.read.teams, idOrSlug),
  );
  const assigned = {
    teamId,
    percentage: parseCount('The percentage', percentage),
    startsAt: from === undefined ? undefined : parseTime('--from', from, now),
    endsAt: until === undefined ? null : parseTime('--until', until, now),
  };
  const detail = { percentage: assigned.percentage, until: toTime(assigned.endsAt) };
  const action = { action: 'discount.set', subject: teamId, detail };
  const discount = await auditedHere(deps, action, (within) => assignDiscount(within, assigned));
  const sentence = `Discount ${discount.id}: ${discount.percentage} % from ${toTime(discount.startsAt)} until ${toTime(discount.endsAt)}.`;
  printDone(flags, toFields(discount, discountColumns), sentence);
}

const discountColumns: readonly Column<DiscountRecord>[] = [
  { head: 'ID', key: 'id', value: ({ id }) => id },
  { head: 'TEAM', key: 'team_id', value: ({ teamId }) => teamId },
  { head: 'SOURCE', key: 'source', value: ({ source }) => source },
  { head: 'PERCENT', key: 'percent', value: ({ percentage }) => percentage },
  { head: 'FROM', key: 'from', value: ({ startsAt }) => toJsonTime(startsAt) },
  { head: 'UNTIL', key: 'until', value: ({ endsAt }) => toJsonTime(endsAt) },
];
