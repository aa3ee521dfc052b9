import type { Command } from 'commander';

/** Aliases of verbs, which are the same for every noun. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  ls: ['list'],
  show: ['get'],
  create: ['add'],
  rm: ['delete', 'remove', 'destroy'],
  'top-up': ['add'],
};

/** Gives each verb below a noun its aliases. */
export function addVerbAliases(noun: Command): void {
  for (const command of noun.commands) {
    command.aliases(ALIASES[command.name()] ?? []);
    addVerbAliases(command);
  }
}
