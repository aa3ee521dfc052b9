import type { Command } from 'commander';
import { defaultOptions } from '../../marketplace/model/options.ts';
import { countLosses } from '../../marketplace/providers/loss-cap.ts';
import { toTime } from '../../operator-kit/views/values.ts';
import { printLine } from '../../runtime/print.ts';
import { isData, type ListFlags, printData, printPart, printRows, withList } from '../print-records.ts';
import { marketplaceActionCommand } from './action-commands.ts';
import { type CommandDeps, onMarketplaceDatabase } from './database.ts';

/** `berth marketplace losses`: lists resources that providers answer with 404, and the limit on such losses. */
export function marketplaceLossesCommand(): Command {
  const losses = marketplaceActionCommand('losses');
  withList(
    onMarketplaceDatabase(losses.command('ls', { isDefault: true }), async (deps, flags: ListFlags) => {
      const { providers, held } = await readLosses(deps);
      if (isData(flags)) return printData(flags, { providers, held: held.slice(0, flags.limit) });
      if (providers.length === 0)
        return printLine('No provider answers 404 for a resource that was not deleted there.');
      printPart(providers);
      printRows(held, flags, { none: 'Nothing is held.' });
      if (held.length > 0)
        printLine(
          'Held resources keep their state, and are billed up to the last answer of their provider. Check that the key and base_url of the ' +
            'provider are those of your account; if all of it is really lost: berth marketplace losses accept <provider>',
        );
    }),
  ).description('show resources that providers answer 404 for: how many ended, and which are held');
  return losses;
}

async function readLosses({ store: { read }, clock }: CommandDeps) {
  const providers: object[] = [];
  const all: object[] = [];
  for (const provider of await read.losses.providers()) {
    const { count, cap, held, acceptedUntil } = await countLosses(
      read,
      provider,
      defaultOptions.maxLosses,
      clock.now(),
    );
    providers.push({ provider, ended: count, cap, held, accepted_until: toTime(acceptedUntil) });
    for (const { subjectId, kind, at } of await read.losses.held(provider))
      all.push({ id: subjectId, kind, provider, since: toTime(at) });
  }
  return { providers, held: all };
}
