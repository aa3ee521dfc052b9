import { Command } from 'commander';
import { assignDiscount } from '../../marketplace/discounts/assign.ts';
import { endDiscount } from '../../marketplace/discounts/end.ts';
import { findTeam } from '../../marketplace/teams/manage-teams.ts';
import { toTime } from '../keys-command.ts';
import { printLine, printTable } from '../print.ts';
import { withMarketplaceDatabase, withMarketplaceStore } from './open-marketplace-store.ts';
import { parseCount, parseTime } from './parse-values.ts';

/** `berth marketplace discounts` (M: Offer: admin-assigned discounts). */
export function discountsCommand(): Command {
  const discounts = new Command('discounts').description('discounts of teams: set, list and end them');
  withMarketplaceDatabase(discounts.command('set <team> <percentage>'))
    .description('give a team a discount of 5 to 50 percent')
    .option('--from <when>', 'a number of days ("30d") or a time; default now')
    .option('--until <when>', 'default: until it is ended')
    .action(
      async (
        idOrSlug: string,
        percentage: string,
        { from, until }: { from?: string; until?: string },
        command: Command,
      ) =>
        withMarketplaceStore(command, async (deps) => {
          const now = deps.clock.now();
          const { id: teamId } = await findTeam(deps.store.read.teams, idOrSlug);
          const discount = await assignDiscount(deps, {
            ...{ teamId, percentage: parseCount('The percentage', percentage) },
            ...(from !== undefined && { startsAt: parseTime('--from', from, now) }),
            ...(until !== undefined && { endsAt: parseTime('--until', until, now) }),
          });
          printLine(
            `Discount ${discount.id}: ${discount.percentage} % from ${toTime(discount.startsAt)} until ${toTime(discount.endsAt)}.`,
          );
        }),
    );
  withMarketplaceDatabase(discounts.command('list [team]'))
    .description('list the discounts of a team, or of all; those that are over too')
    .action(async (idOrSlug: string | undefined, _flags: object, command: Command) =>
      withMarketplaceStore(command, async ({ store: { read } }) => {
        const records =
          idOrSlug === undefined
            ? await read.discounts.list()
            : await read.discounts.ofTeam((await findTeam(read.teams, idOrSlug)).id);
        printTable(
          ['ID', 'TEAM', 'SOURCE', 'PERCENT', 'FROM', 'UNTIL'],
          records.map(({ id, teamId, source, percentage, startsAt, endsAt }) => [
            ...[id, teamId, source, String(percentage), toTime(startsAt), toTime(endsAt)],
          ]),
        );
      }),
    );
  withMarketplaceDatabase(discounts.command('end <id>'))
    .description('end an assigned discount now')
    .action(async (id: string, _flags: object, command: Command) =>
      withMarketplaceStore(command, async (deps) => {
        const { endsAt } = await endDiscount(deps, id);
        printLine(`Discount ${id} ends at ${toTime(endsAt)}.`);
      }),
    );
  return discounts;
}
