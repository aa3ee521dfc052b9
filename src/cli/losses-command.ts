import { Command } from 'commander';
import { counted } from '../contract/counted.ts';
import { type Losses, lossesView } from '../orchestrator/operate/actions/losses.ts';
import { printLine, printTable } from '../runtime/print.ts';
import { toOperationDeps, withActions } from './action-commands.ts';
import { onDatabase } from './orchestrator-database.ts';
import { isData, type ListFlags, printCut, printData, withList } from './print-records.ts';

type PlatformLosses = Losses['platforms'][number];
type Held = PlatformLosses['held'][number] & { platform: string };

/** `berth losses`: machines that platforms lost, and the limits beyond which an operator decides. */
export function lossesCommand(): Command {
  const losses = new Command('losses');
  withList(
    onDatabase(losses.command('ls', { isDefault: true }), async (deps, flags: ListFlags) => {
      const found = await lossesView.read(toOperationDeps(deps), {});
      const { platforms, window_s: seconds } = found;
      const held = platforms.flatMap(({ platform, held }) => held.map((one) => ({ ...one, platform })));
      if (isData(flags)) return printData(flags, toJson(found, held.slice(0, flags.limit)));
      for (const one of platforms) {
        if (platforms.length > 1) printLine(`Platform ${one.platform}:`);
        printCount(one, seconds);
        printTrouble(one);
      }
      printHeld(held, platforms.length > 1, flags);
    }),
  ).description('show how many instances ended as lost, the cap, and which are held');
  return withActions(losses);
}

function printTrouble({
  platform_down_since: frozenSince,
  volumes_doubted_since: volumesDoubtedSince,
}: PlatformLosses): void {
  if (frozenSince !== null)
    printLine(
      `Since ${frozenSince} the platform does not answer, or too many machines are missing from its listing: nothing is sold or ended. To see what is missing: berth alarms ls; only if it is really lost: berth losses accept`,
    );
  if (volumesDoubtedSince !== null)
    printLine(
      `Since ${volumesDoubtedSince} too many volumes are missing: for an hour no deletion of a volume counts as confirmed. If they are really gone: berth losses accept`,
    );
}

function printCount({ lost, allowed, accepted_until: until }: PlatformLosses, seconds: number): void {
  const minutes = counted(Math.round(seconds / 60), 'minute');
  printLine(`${counted(lost, 'instance')} lost within ${minutes}; the cap is ${allowed}.`);
  if (until !== null) printLine(`Losses are accepted until ${until}.`);
}

function printHeld(held: readonly Held[], areSeveral: boolean, flags: ListFlags): void {
  if (held.length === 0) {
    printLine('No instance is held.');
    return;
  }
  printTable(
    ['HELD INSTANCE', 'STATUS', 'REGION', ...(areSeveral ? ['PLATFORM'] : [])],
    held
      .slice(0, flags.limit)
      .map(({ id, status, region, platform }) => [id, status, region, ...(areSeveral ? [platform] : [])]),
  );
  printCut(held.length, flags);
  printLine('If they are really lost: berth losses accept');
}

/** Formats all losses as JSON. With several platforms, each has its losses under its name. */
function toJson({ platforms, window_s }: Losses, held: readonly Held[]): object {
  const areSeveral = platforms.length > 1;
  const shown = platforms.map(({ platform, held: _, ...losses }) => [platform, losses] as const);
  return {
    ...(areSeveral ? { platforms: Object.fromEntries(shown) } : shown[0]?.[1]),
    window_s,
    held: held.map(({ platform, ...one }) => ({ ...one, ...(areSeveral && { platform }) })),
  };
}
