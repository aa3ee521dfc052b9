import { readFileSync } from 'node:fs';
import type { DriverDefinition } from '../../src/drivers/kit/driver-definition.ts';
import { drivers } from '../../src/drivers/registry.ts';
import type { DriverManifest } from '../../src/orchestrator/model/platform-driver.ts';

/** A driver in one of its settings. */
interface Column {
  definition: DriverDefinition;
  setting?: string;
  manifest: DriverManifest;
}

const volumeResizes = { attached: 'at any time', detached: 'while attached to nothing', none: 'no' };
const attaches = { hot: 'while it runs', cold: 'while it is stopped', none: 'no' };

const capabilities: readonly [string, (column: Column) => string | boolean][] = [
  ['stop a machine, its disk kept', ({ manifest }) => manifest.stop],
  ['start it again', ({ manifest }) => manifest.resume],
  ['restart it', ({ manifest }) => manifest.restart],
  ['attach a volume', ({ manifest }) => attaches[manifest.attachVolume]],
  ['make a volume larger', ({ manifest }) => volumeResizes[manifest.resizeVolume]],
  ['cloud-init, in KiB of user data', ({ manifest }) => String(Math.floor(manifest.cloudInitBytes / 1024))],
  ['report how much of a volume is used', ({ manifest }) => manifest.volumeUsage ?? false],
  ['keep the note of what it made, for a restore', ({ manifest }) => manifest.keepsNotes],
  [
    'seconds until what was made is listed for sure',
    ({ manifest }) => String(manifest.createVisibleWithinMs / 1000),
  ],
  ['refuse a command of an earlier claim', ({ manifest }) => manifest.fences ?? false],
  ['notice a second server with a copy of the database', ({ manifest }) => manifest.marksWriter ?? false],
  ['choose among hosts, which can be cordoned', ({ definition }) => definition.placesOnHosts ?? false],
  ['be checked by `berth doctor`', ({ definition }) => definition.diagnose !== undefined],
];

/** docs/drivers.md: what each driver can do, its traps, and on what it is proved. */
export async function driversPage(among: readonly DriverDefinition[] = drivers): Promise<string> {
  // The default driver is for trials: it comes last.
  const ordered = among.toReversed();
  const columns: Column[] = [];
  for (const definition of ordered)
    for (const one of (await definition.manifests?.()) ?? []) columns.push({ definition, ...one });
  const heads = columns.map(({ setting, definition: { name } }) =>
    setting === undefined ? `\`${name}\`` : `\`${name}\`, \`${setting}\``,
  );
  const rows = capabilities.map(([what, toValue]) => [
    what,
    ...columns.map((column) => inWords(toValue(column))),
  ]);
  return [
    '# Drivers',
    '',
    'A driver of your own (`driver: exec`) [says itself](how-to/driver-in-any-language.md) what it can do. What a driver cannot do is',
    'refused with a code of its own ([errors.md](errors.md): `…_unsupported`). Each of the others can',
    '',
    ...rows.filter(isSame).map(([what]) => `- ${what}`),
    '',
    `| | ${heads.join(' | ')} |`,
    `|---${'|---'.repeat(heads.length)}|`,
    ...rows.filter((row) => !isSame(row)).map((cells) => `| ${cells.join(' | ')} |`),
    '',
    readFileSync(new URL('unusual-answers.md', import.meta.url), 'utf8').trimEnd(),
    '',
    ...ordered.flatMap(sectionOf),
  ].join('\n');
}

function sectionOf({ name, about }: DriverDefinition): string[] {
  const { provedOn, provedBy, traps, guide } = about;
  const tests = provedBy.map((file) => `[${file}](../${file})`);
  return [
    `## ${name}`,
    '',
    `Proved on ${provedOn}: ${tests.join(', ')}. What may surprise you, besides [what to know](${guide}):`,
    '',
    ...traps.map((trap) => `- ${trap}`),
    '',
  ];
}

/** Whether every driver, in every setting, can do it. */
function isSame([, ...cells]: readonly string[]): boolean {
  return cells.every((cell) => cell === 'yes');
}

function inWords(value: string | boolean): string {
  if (typeof value === 'string') return value;
  return value ? 'yes' : 'no';
}
