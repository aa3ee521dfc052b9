import type { AlarmRow } from '../../../operator-kit/alarms/operations.ts';
import { actionLink } from '../../../operator-kit/console/action-pages.ts';
import {
  ago,
  badge,
  count,
  facts,
  given,
  type Html,
  html,
  live,
  named,
  table,
  withQuery,
} from '../../../operator-kit/console/parts.ts';
import { ABOUT_LOSSES, acceptLosses } from '../../operate/actions/losses.ts';
import { alarmsView } from '../../operate/alarms.ts';
import { type HostRow, listPlatforms, type PlatformView } from '../../operate/views/platforms.ts';
import type { Page } from '../deps.ts';
import { cordonLink } from './cordons.ts';

/** Each platform: whether it is trusted, its count of free units, and its hosts. */
export const platformsPage: Page = async ({ store, platforms: configured }, { now }) => {
  const [platforms, { alarms }] = await Promise.all([
    listPlatforms(store.read, configured),
    alarmsView.read({ store }, {}),
  ]);
  return {
    title: 'Platforms',
    body: html`<h1>Platforms</h1>${platforms.map((platform) =>
      live(
        `platform-${platform.platform}`,
        onePlatform(
          platform,
          alarms.filter((alarm) => alarm.platform === platform.platform && ABOUT_PLATFORMS.has(alarm.kind)),
          now,
        ),
      ),
    )}`,
  };
};

const ABOUT_PLATFORMS = new Set([
  'platform_down',
  'platform_suspect',
  'platform_taken',
  'platform_unmarked',
  'volumes_suspect',
  'inventory_unknown',
  'host_unknown',
  'losses_held',
]);

function onePlatform(platform: PlatformView, alarms: readonly AlarmRow[], now: number): Html {
  const { platform: name, driver, down_since, inventory, hosts } = platform;
  return html`<div class="head"><h2>${name}</h2>${
    down_since === null ? badge('trusted', 'good') : badge('frozen', 'bad')
  } <span class="small">${cordonLink('platform', name)}</span>${
    alarms.some(({ kind }) => ABOUT_LOSSES.has(kind))
      ? html` ${actionLink(acceptLosses, 'Accept losses', { platform: name })}`
      : ''
  }</div>
${alarms.map(
  ({ kind, text, since }) =>
    html`<div class="notice bad"><h2>${kind}, ${ago(since, now)}</h2><p>${given(text)}</p></div>`,
)}
${facts([
  ['Driver', driver ?? 'no longer configured'],
  ['Frozen since', ago(down_since, now)],
  ['Volumes not trusted since', ago(platform.volumes_doubted_since, now)],
  ['Restored from a backup of', ago(platform.restored_from, now)],
  ['Capacity counted', inventory === null ? 'not counted' : ago(now - inventory.age_s * 1000, now)],
])}
${inventory?.limited_by.map((limit) => html`<p class="small">Limited by ${given(limit)}</p>`) ?? ''}
${table(
  [
    {
      head: 'Host',
      cell: ({ host }) =>
        host === null
          ? html`<span class="soft">unknown</span>`
          : html`<a href="${withQuery('/console/instances', { platform: name, host })}">${named(host)}</a>`,
    },
    { head: 'State', cell: stateOf },
    { head: 'vCPU', cell: ({ vcpus }) => shareOf(vcpus), isNumber: true },
    { head: 'Memory GB', cell: ({ memory_gb: memory }) => shareOf(memory), isNumber: true },
    { head: 'Disk GB', cell: ({ disk_gb: disk }) => shareOf(disk), isNumber: true },
    { head: 'Instances', cell: instancesOf },
    { head: 'Devices', cell: devicesOf },
  ],
  hosts,
  'No known hosts and no instances.',
)}`;
}

const HOST_TONES = { open: 'good', closed: 'wait', silent: 'bad' } as const;

function stateOf({ state, detail }: HostRow): Html {
  if (state === null) return html`<span class="soft">unknown</span>`;
  return html`${badge(state, HOST_TONES[state])}${detail === null ? '' : html` <span class="small">${given(detail)}</span>`}`;
}

/** The taken amount and the total. */
function shareOf(share: HostRow['vcpus']): Html {
  if (share === null) return html`<span class="soft">–</span>`;
  return html`${count(share.taken)} <span class="soft">of ${count(share.total)}</span>`;
}

/** The number of instances by status: ONLINE and PROVISIONING first. */
function instancesOf({ instances }: HostRow): Html {
  const first = ['ONLINE', 'PROVISIONING'].filter((status) => instances[status]);
  const counted = [...new Set([...first, ...Object.keys(instances).sort()])];
  if (counted.length === 0) return html`<span class="soft">none</span>`;
  return html`${counted.map((status) => html`<div>${count(instances[status] ?? 0)} <span class="small">${status}</span></div>`)}`;
}

const DEVICE_TONES = {
  free: 'good',
  claimed: 'busy',
  dirty: 'wait',
  quarantined: 'bad',
  unusable: 'bad',
} as const;

/** Each device, with the machine that has it or the reason why it is not free. */
function devicesOf({ devices }: HostRow): Html | '' {
  if (devices.length === 0) return '';
  return html`<ul class="calls">${devices.map(
    ({ id, type, state, ref, detail }) =>
      html`<li class="${DEVICE_TONES[state]}"><code>${given(id)}</code> ${given(type)} <b>${state}</b>${
        ref === null
          ? html`${detail === null ? '' : html`: ${given(detail)}`}`
          : html` by <a href="${withQuery('/console/instances', { q: ref })}"><code>${given(ref)}</code></a>`
      }</li>`,
  )}</ul>`;
}
