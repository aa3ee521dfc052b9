import type { Catalog } from '../../../orchestrator/catalog/catalog.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Host } from '../client.ts';
import type { HostShell } from '../hosts/host-shell.ts';
import type { LibvirtConfig } from '../options.ts';

/** A host under examination, with the relevant configuration. */
export interface Patient {
  host: Host;
  shell: HostShell;
  config: LibvirtConfig;
  catalog: Catalog;
  clock: Clock;
}
