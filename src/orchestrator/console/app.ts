import type { Hono } from 'hono';
import { alarmRoutesView } from '../../operator-kit/alarms/operations.ts';
import { assembleConsole } from '../../operator-kit/console/app.ts';
import type { ConsoleEnv } from '../../operator-kit/console/deps.ts';
import { figureCards, rangeLinks, rangeOf } from '../../operator-kit/console/figure-parts.ts';
import type { Look } from '../../operator-kit/console/layout.ts';
import { html } from '../../operator-kit/console/parts.ts';
import { belowAlarms, type PageExtras, viewPage } from '../../operator-kit/console/view-pages.ts';
import { auditView } from '../../operator-kit/views/audit.ts';
import { cordonsView } from '../operate/actions/cordons.ts';
import { lossesView } from '../operate/actions/losses.ts';
import { alarmsView, endedAlarmsView } from '../operate/alarms.ts';
import { figures } from '../operate/figures/figures.ts';
import { operations, operatorKeys } from '../operate/operations.ts';
import { accountsView, keysView } from '../operate/views/accounts.ts';
import { instancesView } from '../operate/views/instances.ts';
import { orphansView } from '../operate/views/orphans.ts';
import { platformView } from '../operate/views/platform.ts';
import { platformCheckView } from '../operate/views/platform-check.ts';
import { platformsView } from '../operate/views/platforms.ts';
import { timeline } from '../operate/views/timeline.ts';
import { workView } from '../operate/views/work.ts';
import { cordonChoices, instanceChoices } from './choices.ts';
import type { ConsoleDeps, Page } from './deps.ts';
import { capacityPage } from './pages/capacity.ts';
import { fleetPage } from './pages/fleet.ts';
import { instancePage } from './pages/instance.ts';
import { offerPage } from './pages/offer.ts';

const look: Look = {
  brand: 'Berth',
  tabs: [
    { path: '/console', name: 'Fleet' },
    { path: '/console/instances', name: 'Instances' },
    { path: '/console/alarms', name: 'Alarms' },
    { path: '/console/timeline', name: 'Timeline' },
    { path: '/console/work', name: 'Work' },
    { path: '/console/capacity', name: 'Capacity' },
    { path: '/console/cordons', name: 'Cordons' },
    { path: '/console/platforms', name: 'Platforms' },
    { path: '/console/orphans', name: 'Orphans' },
    { path: '/console/accounts', name: 'Accounts' },
    { path: '/console/keys', name: 'Keys' },
    { path: '/console/operator-keys', name: 'Operators' },
    { path: '/console/audit', name: 'Audit' },
  ],
  search: {
    path: '/console/instances',
    label: 'Find an instance',
    placeholder: 'Find an instance: id, name, address … (press /)',
  },
  command: 'berth operators',
};

/** To the findings of `berth doctor`, and what the platform answered over time. */
const belowPlatform: PageExtras<ConsoleDeps>['below'] = async ({ store }, { params, query, now }) => {
  const platform = params['platform'] ?? '';
  const path = `/console/platforms/${encodeURIComponent(platform)}`;
  const range = rangeOf(query);
  const shown = {
    reader: store.read.figures,
    range,
    now,
    filter: { subject: platform },
    query: { platform },
  };
  return html`<p><a href="${path}/check">Check what its driver needs</a></p>
${rangeLinks(path, range)}${await figureCards([figures.answers, figures.callTime], shown)}`;
};

/** Every page below `/console`, by its path. */
export const pages: readonly (readonly [path: string, page: Page])[] = [
  ['/', fleetPage],
  viewPage(instancesView, operations, { choices: instanceChoices }),
  ['/instances/:id', instancePage],
  viewPage(alarmsView, operations, { below: belowAlarms }),
  viewPage(endedAlarmsView, operations),
  viewPage(alarmRoutesView, operations),
  viewPage(timeline, operations),
  viewPage(workView, operations),
  ['/capacity', capacityPage],
  ['/offers/:id', offerPage],
  viewPage(cordonsView, operations, { choices: cordonChoices }),
  viewPage(platformCheckView, operations),
  viewPage(platformsView, operations),
  viewPage(platformView, operations, { below: belowPlatform }),
  viewPage(orphansView, operations),
  viewPage(lossesView, operations),
  viewPage(accountsView, operations),
  viewPage(keysView, operations),
  viewPage(operatorKeys, operations),
  viewPage(auditView, operations),
];

/** The operator's pages, under `/console` of the admin listener. */
export function createConsole(deps: ConsoleDeps): Hono<ConsoleEnv> {
  return assembleConsole(deps, {
    look,
    pages,
    actions: operations,
    markTab: async ({ store }) => {
      const alarms = await store.read.alarms.list();
      const isNew = alarms.some(({ acknowledgedBy }) => acknowledgedBy === null);
      return { path: '/console/alarms', count: alarms.length, tone: isNew ? 'bad' : 'wait' };
    },
  });
}
