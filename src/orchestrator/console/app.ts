import type { Hono } from 'hono';
import { assembleConsole } from '../../operator-kit/console/app.ts';
import { auditPageOf } from '../../operator-kit/console/audit-page.ts';
import type { ConsoleEnv } from '../../operator-kit/console/deps.ts';
import type { Look } from '../../operator-kit/console/layout.ts';
import { named } from '../../operator-kit/console/parts.ts';
import { timelinePageOf } from '../../operator-kit/console/timeline-page.ts';
import { operations } from '../operate/operations.ts';
import { timeline } from '../operate/views/timeline.ts';
import type { ConsoleDeps, Page } from './deps.ts';
import { instanceLink } from './instance-parts.ts';
import { accountsPage } from './pages/accounts.ts';
import { alarmsPage } from './pages/alarms.ts';
import { capacityPage } from './pages/capacity.ts';
import { cordonsPage } from './pages/cordons.ts';
import { fleetPage } from './pages/fleet.ts';
import { instancePage } from './pages/instance.ts';
import { instancesPage } from './pages/instances.ts';
import { orphansPage } from './pages/orphans.ts';
import { platformsPage } from './pages/platforms.ts';
import { workPage } from './pages/work.ts';

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
  ['/instances', instancesPage],
  ['/instances/:id', instancePage],
  ['/alarms', alarmsPage],
  ['/timeline', timelinePageOf(timeline, linkOf)],
  ['/work', workPage],
  ['/capacity', capacityPage],
  ['/cordons', cordonsPage],
  ['/platforms', platformsPage],
  ['/orphans', orphansPage],
  ['/accounts', accountsPage],
  ['/audit', auditPageOf(linkOf)],
];

function linkOf(subject: string): unknown {
  return subject.startsWith('inst-') ? instanceLink(subject) : named(subject);
}

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
