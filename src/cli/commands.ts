import { Command } from 'commander';
import type { ServePorts } from '../compose/serve/orchestrator.ts';
import { type LazyCommand, type LazyCommands, toLazy } from './program.ts';

/**
 * All commands except `conformance`, which is a separate program. Loads only the subcommands that `isNamed` accepts.
 */
export function commandsOf(isNamed: (name: string) => boolean, ports: ServePorts): readonly LazyCommand[] {
  const commands: LazyCommands = {
    serve: [
      'serve the /v1 contract; without --config, the simulator and the bundled catalog',
      async () => (await import('./serve-command.ts')).serveCommand(ports),
    ],
    context: [
      'the servers that commands use, and which one is in use',
      async () => (await import('./context/context-command.ts')).contextCommand(),
    ],
    keys: ['create, list and revoke API keys'],
    accounts: [
      'create and list accounts, set their passwords',
      async () => (await import('./accounts-command.ts')).accountsCommand(),
    ],
    losses: ['instances that the platform lost: how many ended, the cap, and which are held'],
    instances: [
      'create, list and use instances, show their open work and history, retry or delete them',
      async () => (await import('./machines/commands.ts')).instancesCommand(),
    ],
    status: ['instances, platforms, open work and alarms, on one screen'],
    work: ['unfinished steps of work'],
    alarms: ['open alarms of all servers, those that ended, and who is told'],
    timeline: ['what happened between two times: alarms, actions, restarts, changes of instances'],
    capacity: ['units of each offer and region that are sold, and why none are available'],
    figures: ['figures over time: how full, earnings, creates and failures, what platforms answered'],
    platforms: ['the platforms: their health, and the hosts that have instances'],
    orphans: ['machines and volumes without a row that owns them, and rows that were lost'],
    operators: ['create, list and revoke the keys of the admin listener'],
    audit: ['actions of operators: who, from where, and the outcome'],
    cordon: ['place nothing new on a region, an offer, a platform or a host; running instances stay'],
    uncordon: ['remove a cordon'],
    drain: ['cordon, and list the machines that are still there'],
    cordons: ['cordons and planned maintenance'],
    maintenance: ['announce maintenance in the catalog: nothing new is placed there during it'],
    reload: [
      'make every server reload its catalog without a restart: offers, prices, units',
      async () => (await import('./reload-command.ts')).reloadCommand(),
    ],
    backup: [
      'copy the database, also while `berth serve` runs',
      async () => {
        const { orchestratorStores } = await import('../compose/stores/orchestrator.ts');
        const { loadFor } = await import('./orchestrator-database.ts');
        return (await import('./backup-command.ts')).backupCommand('berth', orchestratorStores, loadFor);
      },
    ],
    restore: [
      'replace the database with a backup, or mark a database that other tools restored',
      async () => (await import('./restore-command.ts')).restoreCommand(),
    ],
    'check-database': [
      'check the whole database for damage, also while `berth serve` runs',
      async () => (await import('./upgrade-command.ts')).checkOrchestratorCommand(),
    ],
    upgrade: [
      'upgrade the database to this version',
      async () => (await import('./upgrade-command.ts')).orchestratorUpgradeCommand(),
    ],
    'check-config': [
      'check berth.yaml and the catalog that it names, or a marketplace.yaml',
      async () => (await import('./check-config-command.ts')).checkConfigCommand(),
    ],
    doctor: [
      'check what `berth serve` needs: database, clock, TLS, prerequisites of each driver',
      async () => (await import('./doctor-command.ts')).doctorCommand(),
    ],
    health: [
      'ask a server of this machine whether it is alive: for the health check of a container',
      async () => (await import('./health-command.ts')).healthCommand(),
    ],
    driver: [
      'test your own driver, in any language, before you sell from it',
      async () => (await import('./driver-command.ts')).driverCommand(),
    ],
    version: ['print the version', async () => (await import('./version-command.ts')).versionCommand()],
    simulator: [
      'run the simulated platform as a separate server that several `berth serve` share by platform.address, with the units of the catalog; set BERTH_SIMULATOR_TOKEN for all of them to refuse other clients',
      async () => (await import('./simulator-command.ts')).simulatorCommand(),
    ],
    sandbox: [
      'run providers in memory at one port, to test a client against them',
      async () => (await import('./sandbox-command.ts')).sandboxCommand(),
    ],
    marketplace: [
      'serve the marketplace API on top of provider orchestrators',
      async () => (await import('./marketplace/marketplace-command.ts')).marketplaceCommand(isNamed),
    ],
  };
  return toLazy(commands, async (name) =>
    (await import('./action-commands.ts')).withActions(new Command(name)),
  );
}
