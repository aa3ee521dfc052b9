import { z } from 'zod';
import { ApiError } from '../../../contract/errors.ts';
import type { Columns } from '../../../operator-kit/columns.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import { count, span } from '../../../operator-kit/views/values.ts';
import { alarmColumns, alarmRowSchema, listAlarms } from './alarms.ts';
import {
  countInstances,
  type Deps,
  deviceSchema,
  type HostRow,
  listPlatforms,
  platformViewSchema,
  stateOf,
  toneOfState,
} from './platforms.ts';

const ABOUT_PLATFORMS: ReadonlySet<string> = new Set([
  'platform_down',
  'platform_suspect',
  'platform_taken',
  'platform_unmarked',
  'volumes_suspect',
  'inventory_unknown',
  'host_unknown',
  'losses_held',
]);

const platformDetailSchema = platformViewSchema
  .extend({
    alarms: z.array(alarmRowSchema).meta({ description: 'Open alarms about the platform itself.' }),
    devices: z.array(deviceSchema.extend({ host: z.string().nullable() })),
  })
  .meta({ id: 'PlatformDetail' });
export type PlatformDetail = z.output<typeof platformDetailSchema>;
type DeviceRow = PlatformDetail['devices'][number];

const HOST_TONES = { open: 'good', closed: 'wait', silent: 'bad' } as const;
const DEVICE_TONES = {
  free: 'good',
  claimed: 'busy',
  dirty: 'wait',
  quarantined: 'bad',
  unusable: 'bad',
} as const;

/** The taken amount and the total. */
function shareOf(share: HostRow['vcpus']): string | null {
  return share && `${count(share.taken)} of ${count(share.total)}`;
}

const hostColumns: Columns<HostRow> = [
  {
    field: 'host',
    page: ({ host }) => (host === null ? undefined : `/instances?${new URLSearchParams({ host })}`),
  },
  { field: 'state', tone: ({ state }) => (state === null ? undefined : HOST_TONES[state]) },
  { field: 'detail', under: 'state', kind: 'text' },
  { field: 'instances', kind: 'text', text: (host) => countInstances([host]) },
  { field: 'vcpus', title: 'vCPU', kind: 'text', text: ({ vcpus }) => shareOf(vcpus) },
  { field: 'memory_gb', title: 'memory GB', kind: 'text', text: ({ memory_gb: memory }) => shareOf(memory) },
  { field: 'disk_gb', title: 'disk GB', kind: 'text', text: ({ disk_gb: disk }) => shareOf(disk) },
];

const deviceColumns: Columns<DeviceRow> = [
  'id',
  'type',
  { field: 'state', tone: ({ state }) => DEVICE_TONES[state] },
  'host',
  {
    field: 'ref',
    title: 'machine',
    page: ({ ref }) => `/instances?${new URLSearchParams({ q: ref ?? '' })}`,
  },
  'detail',
];

export const platformView = defineView({
  name: 'showPlatform',
  tag: 'Views',
  path: '/platforms/{platform}',
  summary: 'One platform with its alarms, hosts and devices',
  description: 'As this server knows it.',
  input: { platform: z.string() },
  errors: ['not_found'],
  reply: ['The platform.', platformDetailSchema],
  commands: [
    {
      name: 'platforms show',
      description: 'show a platform: its health, its alarms, its hosts and their devices',
      args: { platform: ['<platform>'] },
      toText: ({ inventory }) =>
        inventory === null
          ? ['', 'A running server also knows other hosts, their room and their devices: see its console.']
          : [],
    },
  ],
  detail: {
    title: ({ platform }) => platform,
    facts: [
      { field: 'driver', text: ({ driver }) => driver ?? 'no longer configured' },
      { field: 'down_since', title: 'state', text: stateOf, tone: toneOfState },
      { field: 'volumes_doubted_since', title: 'volumes not trusted since' },
      { field: 'restored_from', title: 'restored from a backup of' },
      { field: 'inventory', title: 'capacity counted', kind: 'text', text: ageOfCount },
      {
        field: 'hosts',
        title: 'limited by',
        kind: 'text',
        text: ({ inventory }) => inventory?.limited_by.join('; ') || null,
      },
    ],
    lists: [
      { rows: 'alarms', title: 'Alarms', none: 'No alarm about it is open.', columns: alarmColumns },
      { rows: 'hosts', title: 'Hosts', none: 'No known hosts and no instances.', columns: hostColumns },
      { rows: 'devices', title: 'Devices', none: 'No device for sale is known.', columns: deviceColumns },
    ],
  },
  read: async ({ store: { read }, platforms }: Deps, { platform: name }) => {
    const [found, alarms] = await Promise.all([listPlatforms(read, platforms), listAlarms(read)]);
    const platform = found.find((one) => one.platform === name);
    if (platform === undefined)
      throw new ApiError('not_found', `There is no platform ${name}: see \`berth platforms\`.`);
    return {
      ...platform,
      alarms: alarms.filter((alarm) => alarm.platform === name && ABOUT_PLATFORMS.has(alarm.kind)),
      devices: platform.hosts.flatMap(({ host, devices }) => devices.map((device) => ({ ...device, host }))),
    };
  },
});

function ageOfCount({ inventory }: PlatformDetail): string {
  return inventory === null ? 'not counted' : `${span(inventory.age_s * 1000)} ago`;
}
