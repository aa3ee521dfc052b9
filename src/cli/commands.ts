import type { ServePorts } from '../compose/serve/orchestrator.ts';
import type { LazyCommand } from './program.ts';

/** A command that has only views and actions, or is one itself. */
function noun(name: string, description: string): LazyCommand {
  return { name, description, load: async () => (await import('./action-commands.ts')).actionCommand(name) };
}

/**
 * All commands except `conformance`, which is a separate program. Loads only the subcommands that `isNamed` accepts.
 */
export function commandsOf(isNamed: (name: string) => boolean, ports: ServePorts): readonly LazyCommand[] {
  return [
    {
      name: 'serve',
      description: 'serve the /v1 contract; without --config, the simulator and the bundled catalog',
      load: async () => (await import('./serve-command.ts')).serveCommand(ports),
    },
    noun('keys', 'create, list and revoke API keys'),
    {
      name: 'accounts',
      description: 'create and list accounts, set their passwords',
      load: async () => (await import('./accounts-command.ts')).accountsCommand(),
    },
    {
      name: 'losses',
      description: 'instances that the platform lost: how many ended, the cap, and which are held',
      load: async () => (await import('./losses-command.ts')).lossesCommand(),
    },
    {
      name: 'instances',
      description: 'list instances, show their open work and history, retry or delete them',
      load: async () => (await import('./instances-command.ts')).instancesCommand(),
    },
    noun('status', 'instances, platforms, open work and alarms, on one screen'),
    noun('work', 'unfinished steps of work'),
    noun('alarms', 'open alarms of all servers, and who acknowledged them'),
    {
      name: 'capacity',
      description: 'units of each offer and region: sold, free, and why none are available',
      load: async () => (await import('./fleet-commands.ts')).capacityCommand(),
    },
    {
      name: 'platforms',
      description: 'the platforms: their health, their hosts and the devices of these',
      load: async () => (await import('./fleet-commands.ts')).platformsCommand(),
    },
    noun('orphans', 'machines and volumes without a row that owns them, and rows that were lost'),
    {
      name: 'operators',
      description: 'create, list and revoke the keys of the admin listener',
      load: async () => (await import('./action-commands.ts')).operatorsCommand(),
    },
    noun('audit', 'actions of operators: who, from where, and the outcome'),
    noun('cordon', 'place nothing new on a region, an offer, a platform or a host; running instances stay'),
    noun('uncordon', 'remove a cordon'),
    noun('drain', 'cordon, and list the machines that are still there'),
    noun('cordons', 'cordons and planned maintenance'),
    noun('maintenance', 'announce maintenance in the catalog: nothing new is placed there during it'),
    {
      name: 'reload',
      description: 'make every server reload its catalog without a restart: offers, prices, units',
      load: async () => (await import('./reload-command.ts')).reloadCommand(),
    },
    {
      name: 'backup',
      description: 'copy the database, also while `berth serve` runs',
      load: async () => (await import('./backup-command.ts')).backupCommand(),
    },
    {
      name: 'restore',
      description: 'replace the database with a backup, or mark a database that other tools restored',
      load: async () => (await import('./restore-command.ts')).restoreCommand(),
    },
    {
      name: 'check-database',
      description: 'check the whole database for damage, also while `berth serve` runs',
      load: async () => (await import('./backup-command.ts')).checkCommand(),
    },
    {
      name: 'upgrade',
      description: 'upgrade the database to this version',
      load: async () => (await import('./upgrade-command.ts')).orchestratorUpgradeCommand(),
    },
    {
      name: 'check-config',
      description: 'check berth.yaml and the catalog that it names, or a marketplace.yaml',
      load: async () => (await import('./check-config-command.ts')).checkConfigCommand(),
    },
    {
      name: 'doctor',
      description:
        'check what `berth serve` needs: database, clock, TLS, prerequisites of each driver, rows against machines',
      load: async () => (await import('./doctor-command.ts')).doctorCommand(),
    },
    {
      name: 'health',
      description: 'ask a server of this machine whether it is alive: for the health check of a container',
      load: async () => (await import('./health-command.ts')).healthCommand(),
    },
    {
      name: 'image',
      description: 'check a base image and put it on the hosts of a platform',
      load: async () => (await import('./image-command.ts')).imageCommand(),
    },
    {
      name: 'driver',
      description: 'test your own driver, in any language, before you sell from it',
      load: async () => (await import('./driver-command.ts')).driverCommand(),
    },
    {
      name: 'simulator',
      description:
        'run the simulated platform as a separate server that several `berth serve` share by platform.address, with the units of the catalog; set BERTH_SIMULATOR_TOKEN for all of them to refuse other clients',
      load: async () => (await import('./simulator-command.ts')).simulatorCommand(),
    },
    {
      name: 'sandbox',
      description: 'run providers in memory at one port, to test a client against them',
      load: async () => (await import('./sandbox-command.ts')).sandboxCommand(),
    },
    {
      name: 'marketplace',
      description: 'serve the marketplace API on top of provider orchestrators',
      load: async () => (await import('./marketplace/marketplace-command.ts')).marketplaceCommand(isNamed),
    },
  ];
}
