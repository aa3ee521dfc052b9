import type { ServePorts } from '../compose/serve-orchestrator.ts';
import type { LazyCommand } from './program.ts';

/**
 * All commands of `berth` except `conformance`, which is a separate program. Of their subcommands, only those that
 * `isNamed` accepts are loaded.
 */
export function commandsOf(isNamed: (name: string) => boolean, ports: ServePorts): readonly LazyCommand[] {
  return [
    {
      name: 'serve',
      description: 'serve the /v1 contract; without --config, the simulator and the bundled catalog',
      load: async () => (await import('./serve-command.ts')).serveCommand(ports),
    },
    {
      name: 'keys',
      description: 'create, list and revoke API keys',
      load: async () => (await import('./keys-command.ts')).keysCommand(),
    },
    {
      name: 'accounts',
      description: 'create and list accounts, set their passwords',
      load: async () => (await import('./accounts-command.ts')).accountsCommand(),
    },
    {
      name: 'losses',
      description: 'instances that the platform has lost: how many ended, how many may, and which are held',
      load: async () => (await import('./losses-command.ts')).lossesCommand(),
    },
    {
      name: 'instances',
      description: 'the instances, what is done about each, and what happened to it',
      load: async () => (await import('./instances-command.ts')).instancesCommand(),
    },
    {
      name: 'status',
      description: 'instances, platforms, open work and alarms, on one screen',
      load: async () => (await import('./status-command.ts')).statusCommand(),
    },
    {
      name: 'work',
      description: 'the steps that are not finished',
      load: async () => (await import('./work-command.ts')).workCommand(),
    },
    {
      name: 'alarms',
      description: 'open alarms of all servers, and who acknowledged them',
      load: async () => (await import('./alarms-command.ts')).alarmsCommand(),
    },
    {
      name: 'capacity',
      description: 'units of each offer and region: sold, free, and why none can be had',
      load: async () => (await import('./fleet-commands.ts')).capacityCommand(),
    },
    {
      name: 'platforms',
      description: 'the platforms: whether each can be trusted, its hosts and their devices',
      load: async () => (await import('./fleet-commands.ts')).platformsCommand(),
    },
    {
      name: 'orphans',
      description: 'machines and volumes without a row that owns them, and rows that were lost',
      load: async () => (await import('./fleet-commands.ts')).orphansCommand(),
    },
    {
      name: 'operators',
      description: 'create, list and revoke the keys of the admin listener',
      load: async () => (await import('./operators-command.ts')).operatorsCommand(),
    },
    {
      name: 'audit',
      description: 'what operators did, from where, and with which outcome',
      load: async () => (await import('./audit-command.ts')).auditCommand(),
    },
    {
      name: 'cordon',
      description: 'place nothing new on a region, an offer, a platform or a host; what runs goes on',
      load: async () => (await import('./cordon-commands.ts')).cordonCommand(),
    },
    {
      name: 'uncordon',
      description: 'sell there again',
      load: async () => (await import('./cordon-commands.ts')).uncordonCommand(),
    },
    {
      name: 'drain',
      description: 'cordon, and tell which machines are left there',
      load: async () => (await import('./cordon-commands.ts')).drainCommand(),
    },
    {
      name: 'cordons',
      description: 'what is cordoned, and the maintenance that is planned',
      load: async () => (await import('./cordon-commands.ts')).cordonsCommand(),
    },
    {
      name: 'maintenance',
      description: 'announce maintenance in the catalog: nothing new is placed there in that time',
      load: async () => (await import('./cordon-commands.ts')).maintenanceCommand(),
    },
    {
      name: 'reload',
      description: 'have every server read its catalog anew, without a restart: offers, prices, units',
      load: async () => (await import('./reload-command.ts')).reloadCommand(),
    },
    {
      name: 'thaw',
      description: 'believe a platform that lacks too much: what is missing there is ended as lost',
      load: async () => (await import('./losses-command.ts')).thawCommand(),
    },
    {
      name: 'backup',
      description: 'copy the database, also while `berth serve` runs',
      load: async () => (await import('./backup-command.ts')).backupCommand(),
    },
    {
      name: 'restore',
      description: 'put a backup in the place of the database, or mark one that other tools restored',
      load: async () => (await import('./restore-command.ts')).restoreCommand(),
    },
    {
      name: 'check-database',
      description: 'look through all of the database for damage, also while `berth serve` runs',
      load: async () => (await import('./backup-command.ts')).checkCommand(),
    },
    {
      name: 'upgrade',
      description: 'bring the database to this version; --dry-run tries it and changes nothing',
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
        'look at all that `berth serve` needs, one by one: database, clock, TLS, what each driver asks for, rows against machines',
      load: async () => (await import('./doctor-command.ts')).doctorCommand(),
    },
    {
      name: 'image',
      description: 'check a base image and put it on the hosts of a platform',
      load: async () => (await import('./image-command.ts')).imageCommand(),
    },
    {
      name: 'driver',
      description: 'try a driver of your own, in any language, before it is sold from',
      load: async () => (await import('./driver-command.ts')).driverCommand(),
    },
    {
      name: 'simulator',
      description:
        'run the simulated platform as a server of its own, which several `berth serve` share by platform.address; it has the units of the catalog and the times of `platform:` in berth.yaml; with BERTH_SIMULATOR_TOKEN in the environment of all of them it answers nobody else',
      load: async () => (await import('./simulator-command.ts')).simulatorCommand(),
    },
    {
      name: 'sandbox',
      description:
        'run providers, and on request the marketplace on top of them, in memory and at one port: what to test a client against',
      load: async () => (await import('./sandbox-command.ts')).sandboxCommand(),
    },
    {
      name: 'marketplace',
      description: 'serve the marketplace API on top of provider orchestrators; manage its users and teams',
      load: async () => (await import('./marketplace/marketplace-command.ts')).marketplaceCommand(isNamed),
    },
    {
      name: 'completion',
      description: 'print the script by which bash or zsh completes `berth` at TAB',
      load: async () => (await import('./completion-command.ts')).completionCommand(),
    },
  ];
}
