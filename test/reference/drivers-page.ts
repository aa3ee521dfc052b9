import { manifestOf as incusManifest } from '../../src/drivers/incus/open.ts';
import { manifest as libvirtManifest } from '../../src/drivers/libvirt/open.ts';
import { driverNamed } from '../../src/drivers/registry.ts';
import { manifestOf as simulatorManifest } from '../../src/drivers/simulator/platform/rules.ts';
import type { DriverManifest } from '../../src/orchestrator/model/platform-driver.ts';

/** A driver, with the setting of it that changes what it can do. */
const columns: readonly { setting?: string; manifest: DriverManifest }[] = [
  { manifest: libvirtManifest },
  { setting: 'volume_content: filesystem', manifest: incusManifest({ volume_content: 'filesystem' }) },
  { setting: 'volume_content: block', manifest: incusManifest({ volume_content: 'block' }) },
  { setting: 'attach_volume: hot', manifest: simulatorManifest({ attach_volume: 'hot' }, 0) },
  { setting: 'attach_volume: cold', manifest: simulatorManifest({ attach_volume: 'cold' }, 0) },
];

const volumeResizes = { attached: 'at any time', detached: 'while attached to nothing', none: 'no' };
const attaches = { hot: 'while it runs', cold: 'while it is stopped', none: 'no' };

const capabilities: readonly [string, (manifest: DriverManifest) => string | boolean][] = [
  ['stop a machine, its disk kept', ({ stop }) => stop],
  ['start it again', ({ resume }) => resume],
  ['restart it', ({ restart }) => restart],
  ['attach a volume', ({ attachVolume }) => attaches[attachVolume]],
  ['make a volume larger', ({ resizeVolume }) => volumeResizes[resizeVolume]],
  ['cloud-init, in KiB of user data', ({ cloudInitBytes }) => String(Math.floor(cloudInitBytes / 1024))],
  ['keep the note of what it made, for a restore', ({ keepsNotes }) => keepsNotes],
  [
    'seconds until what was made is listed for sure',
    ({ createVisibleWithinMs }) => String(createVisibleWithinMs / 1000),
  ],
  ['`berth doctor` checks what it needs', ({ name }) => driverNamed(name).diagnose !== undefined],
  ['`berth image import`', ({ name }) => driverNamed(name).importImage !== undefined],
];

/** docs/drivers.md: what each driver can do, by its manifest. */
export function driversPage(): string {
  const heads = columns.map(({ setting, manifest: { name } }) =>
    setting === undefined ? `\`${name}\`` : `\`${name}\`, \`${setting}\``,
  );
  const rows = capabilities.map(([what, toValue]) => [
    what,
    ...columns.map(({ manifest }) => inWords(toValue(manifest))),
  ]);
  return [
    '# Drivers',
    '',
    'What each driver can do. A driver of your own (`driver: exec`) says it of itself: [how to write one](how-to/driver-in-any-language.md).',
    'What a driver cannot do is refused with a code of its own ([errors.md](errors.md): `…_unsupported`). This page is written from the',
    'manifests of the drivers (`npm run generate`).',
    '',
    `| | ${heads.join(' | ')} |`,
    `|---${'|---'.repeat(heads.length)}|`,
    ...rows.map((cells) => `| ${cells.join(' | ')} |`),
    '',
    'How to set them up: [libvirt](how-to/libvirt.md), [Incus](how-to/incus.md), [the simulator](simulator.md).',
    '',
  ].join('\n');
}

function inWords(value: string | boolean): string {
  if (typeof value === 'string') return value;
  return value ? 'yes' : 'no';
}
