import { Command } from 'commander';
import { counted } from '../contract/counted.ts';
import { type Losses, lossesView } from '../orchestrator/operate/actions/losses.ts';
import { printLine } from '../runtime/print.ts';
import { toOperationDeps, withActions } from './action-commands.ts';
import { onDatabase } from './orchestrator-database.ts';
import { isData, type ListFlags, printData, printRows, withList } from './print-records.ts';

type PlatformLosses = Losses['platforms'][number];

/** `berth losses`: machines that platforms lost, and the limits beyond which an operator decides. */
export function lossesCommand(): Command {
  const losses = new Command('losses');
  withList(
    onDatabase(losses.command('ls', { isDefault: true }), async (deps, flags: ListFlags) => {
      const { platforms, window_s: seconds } = await lossesView.read(toOperationDeps(deps), {});
      const [only] = platforms.length > 1 ? [] : platforms;
      const held = platforms.flatMap(({ platform, held }) => held.map((one) => ({ ...one, platform })));
      if (isData(flags)) {
        const shown = platforms.map(({ platform, held: _, ...rest }) => [platform, rest] as const);
        const found = only === undefined ? { platforms: Object.fromEntries(shown) } : shown[0]?.[1];
        const rows = held.slice(0, flags.limit);
        return printData(flags, {
          ...found,
          window_s: seconds,
          held: only === undefined ? rows : rows.map(withoutPlatform),
        });
      }
      for (const one of platforms) {
        if (only === undefined) printLine(`Platform ${one.platform}:`);
        printPlatform(one, seconds);
      }
      printRows(held, flags, {
        hidden: only === undefined ? [] : ['platform'],
        none: 'No instance is held.',
      });
      if (held.length > 0) printLine('If they are really lost: berth losses accept');
    }),
  ).description('show how many instances ended as lost, the cap, and which are held');
  return withActions(losses);
}

function withoutPlatform<T extends { platform: string }>({ platform: _, ...row }: T): Omit<T, 'platform'> {
  return row;
}

function printPlatform(
  {
    lost,
    allowed,
    accepted_until: until,
    platform_down_since: frozenSince,
    volumes_doubted_since: volumesDoubtedSince,
  }: PlatformLosses,
  seconds: number,
): void {
  const minutes = counted(Math.round(seconds / 60), 'minute');
  printLine(`${counted(lost, 'instance')} lost within ${minutes}; the cap is ${allowed}.`);
  if (until !== null) printLine(`Losses are accepted until ${until}.`);
  if (frozenSince !== null)
    printLine(
      `Since ${frozenSince} the platform does not answer, or too many machines are missing from its listing: nothing is sold or ended. To see what is missing: berth alarms ls; only if it is really lost: berth losses accept`,
    );
  if (volumesDoubtedSince !== null)
    printLine(
      `Since ${volumesDoubtedSince} too many volumes are missing: for an hour no deletion of a volume counts as confirmed. If they are really gone: berth losses accept`,
    );
}
