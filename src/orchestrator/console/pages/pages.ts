import { auditPageOf } from '../../../operator-kit/console/audit-page.ts';
import { named } from '../../../operator-kit/console/parts.ts';
import type { Page } from '../deps.ts';
import { instanceLink } from '../instance-parts.ts';
import { accountsPage } from './accounts.ts';
import { alarmsPage } from './alarms.ts';
import { capacityPage } from './capacity.ts';
import { cordonsPage } from './cordons.ts';
import { fleetPage } from './fleet.ts';
import { instancePage } from './instance.ts';
import { instancesPage } from './instances.ts';
import { orphansPage } from './orphans.ts';
import { platformsPage } from './platforms.ts';
import { workPage } from './work.ts';

/** Every page below `/console`, by its path. */
export const pages: readonly (readonly [path: string, page: Page])[] = [
  ['/', fleetPage],
  ['/instances', instancesPage],
  ['/instances/:id', instancePage],
  ['/alarms', alarmsPage],
  ['/work', workPage],
  ['/capacity', capacityPage],
  ['/cordons', cordonsPage],
  ['/platforms', platformsPage],
  ['/orphans', orphansPage],
  ['/accounts', accountsPage],
  [
    '/audit',
    auditPageOf((subject) => (subject.startsWith('inst-') ? instanceLink(subject) : named(subject))),
  ],
];
