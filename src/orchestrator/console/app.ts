import type { Hono } from 'hono';
import { assembleConsole } from '../../operator-kit/console/app.ts';
import type { ConsoleEnv } from '../../operator-kit/console/deps.ts';
import type { Look } from '../../operator-kit/console/layout.ts';
import { viewPage } from '../../operator-kit/console/view-pages.ts';
import { auditView } from '../../operator-kit/views/audit.ts';
import { cordonsView } from '../operate/actions/cordons.ts';
import { lossesView } from '../operate/actions/losses.ts';
import { operations, operatorKeys } from '../operate/operations.ts';
import { accountsView, keysView } from '../operate/views/accounts.ts';
import { alarmsView, orphansView } from '../operate/views/alarms.ts';
import { instancesView } from '../operate/views/instances.ts';
import { platformView } from '../operate/views/platform.ts';
import { platformsView } from '../operate/views/platforms.ts';
import { workView } from '../operate/views/work.ts';
import { cordonChoices, instanceChoices } from './choices.ts';
import type { ConsoleDeps, Page } from './deps.ts';
import { capacityPage } from './pages/capacity.ts';
import { fleetPage } from './pages/fleet.ts';
import { instancePage } from './pages/instance.ts';

const look: Look = {
  brand: 'Berth',
  tabs: [
    { path: '/console', name: 'Fleet' },
    { path: '/console/instances', name: 'Instances' },
    { path: '/console/alarms', name: 'Alarms' },
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

/** Every page below `/console`, by its path. */
export const pages: readonly (readonly [path: string, page: Page])[] = [
  ['/', fleetPage],
  viewPage(instancesView, operations, { choices: instanceChoices }),
  ['/instances/:id', instancePage],
  viewPage(alarmsView, operations),
  viewPage(workView, operations),
  ['/capacity', capacityPage],
  viewPage(cordonsView, operations, { choices: cordonChoices }),
  viewPage(platformsView, operations),
  viewPage(platformView, operations),
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
