import { Command } from 'commander';
import { assignDiscount, endDiscount } from '../../marketplace/discounts/discounts.ts';
import { findTeam } from '../../marketplace/model/own-rows.ts';
import { printLine } from '../../runtime/print.ts';
import { parseCount, parseTime } from '../parse.ts';
import { type JsonFlag, printRecords, toJsonTime, toTime, withJson } from '../print-records.ts';
import { onMarketplaceDatabase, withMarketplaceDatabase } from './database.ts';

/** `berth marketplace discounts` (M: Offer: admin-assigned discounts). */
export function discountsCommand(): Command {
  const discounts = new Command('discounts');
  withMarketplaceDatabase(discounts.command('set <team> <percentage>'))
    .description('give a team a discount of 5 to 50 percent')
    .option('--from <when>', 'in 30m, 2h or 7d, or at an RFC 3339 time; default now')
    .option('--until <when>', 'default: until it is ended')
    .action(
      async (
        idOrSlug: string,
        percentage: string,
        { from, until }: { from?: string; until?: string },
        command: Command,
      ) =>
        onMarketplaceDatabase(command, async (deps) => {
          const now = deps.clock.now();
          const { id: teamId } = await findTeam(deps.store.read.teams, idOrSlug);
          const discount = await assignDiscount(deps, {
            teamId,
            percentage: parseCount('The percentage', percentage),
            ...(from !== undefined && { startsAt: parseTime('--from', from, now) }),
            ...(until !== undefined && { endsAt: parseTime('--until', until, now) }),
          });
          printLine(
            `Discount ${discount.id}: ${discount.percentage} % from ${toTime(discount.startsAt)} until ${toTime(discount.endsAt)}.`,
          );
        }),
    );
  withJson(withMarketplaceDatabase(discounts.command('list [team]')))
    .description('list the discounts of a team, or of all; those that are over too')
    .action(async (idOrSlug: string | undefined, flags: JsonFlag, command: Command) =>
      onMarketplaceDatabase(command, async ({ store: { read } }) => {
        const records =
          idOrSlug === undefined
            ? await read.discounts.list()
            : await read.discounts.ofTeam((await findTeam(read.teams, idOrSlug)).id);
        printRecords(
          records,
          [
            { head: 'ID', key: 'id', value: ({ id }) => id },
            { head: 'TEAM', key: 'team_id', value: ({ teamId }) => teamId },
            { head: 'SOURCE', key: 'source', value: ({ source }) => source },
            { head: 'PERCENT', key: 'percent', value: ({ percentage }) => percentage },
            { head: 'FROM', key: 'from', value: ({ startsAt }) => toJsonTime(startsAt) },
            { head: 'UNTIL', key: 'until', value: ({ endsAt }) => toJsonTime(endsAt) },
          ],
          flags,
        );
      }),
    );
  withMarketplaceDatabase(discounts.command('end <id>'))
    .description('end an assigned discount now')
    .action(async (id: string, _flags: object, command: Command) =>
      onMarketplaceDatabase(command, async (deps) => {
        const { endsAt } = await endDiscount(deps, id);
        printLine(`Discount ${id} ends at ${toTime(endsAt)}.`);
      }),
    );
  return discounts;
}
