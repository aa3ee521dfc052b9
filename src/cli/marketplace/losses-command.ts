import { Command } from 'commander';
import type { LossRecord } from '../../marketplace/model/ledger-records.ts';
import { defaultOptions } from '../../marketplace/model/options.ts';
import { countLosses, type LossCount } from '../../marketplace/providers/loss-cap.ts';
import { printLine } from '../../runtime/print.ts';
import {
  type Column,
  isData,
  type ListFlags,
  printData,
  printRecords,
  toFields,
  toJsonTime,
  withList,
} from '../print-records.ts';
import { withMarketplaceActions } from './action-commands.ts';
import { type CommandDeps, onMarketplaceDatabase } from './database.ts';

/** `berth marketplace losses`: lists resources that providers answer with 404, and the limit on such losses. */
export function marketplaceLossesCommand(): Command {
  const losses = new Command('losses');
  withList(
    onMarketplaceDatabase(losses.command('ls', { isDefault: true }), async (deps, flags: ListFlags) => {
      const { counts, held } = await readLosses(deps);
      if (!isData(flags)) return printLosses(counts, held, flags);
      printData(flags, {
        providers: counts.map((count) => toFields(count, providerColumns)),
        held: held.slice(0, flags.limit).map((record) => toFields(record, heldColumns)),
      });
    }),
  ).description('show resources that providers answer 404 for: how many ended, and which are held');
  return withMarketplaceActions(losses);
}

const providerColumns: readonly Column<LossCount>[] = [
  { head: 'PROVIDER', key: 'provider', value: ({ providerId }) => providerId },
  { head: 'ENDED', key: 'ended', value: ({ count }) => count },
  { head: 'MAY END', key: 'cap', value: ({ cap }) => cap },
  { head: 'HELD', key: 'held', value: ({ held }) => held },
  { head: 'ACCEPTED UNTIL', key: 'accepted_until', value: ({ acceptedUntil }) => toJsonTime(acceptedUntil) },
];

const heldColumns: readonly Column<LossRecord>[] = [
  { head: 'HELD', key: 'id', value: ({ subjectId }) => subjectId },
  { head: 'KIND', key: 'kind', value: ({ kind }) => kind },
  { head: 'PROVIDER', key: 'provider', value: ({ providerId }) => providerId },
  { head: 'SINCE', key: 'since', value: ({ at }) => toJsonTime(at) },
];

async function readLosses({ store: { read }, clock }: CommandDeps) {
  const counts: LossCount[] = [];
  const held: LossRecord[] = [];
  for (const providerId of await read.losses.providers()) {
    counts.push(await countLosses(read, providerId, defaultOptions.maxLosses, clock.now()));
    held.push(...(await read.losses.held(providerId)));
  }
  return { counts, held };
}

function printLosses(counts: readonly LossCount[], held: readonly LossRecord[], flags: ListFlags): void {
  if (counts.length === 0) {
    printLine('No provider answers 404 for a resource that was not deleted there.');
    return;
  }
  printRecords(counts, providerColumns, {});
  if (held.length === 0) {
    printLine('Nothing is held.');
    return;
  }
  printRecords(held, heldColumns, flags);
  printLine(
    'Held resources keep their state, and are billed up to the last answer of their provider. Check that the key and base_url of the ' +
      'provider are those of your account; if all of it is really lost: berth marketplace losses accept <provider>',
  );
}
