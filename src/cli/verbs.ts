import type { Command } from 'commander';

/** The verbs of nouns, each with its aliases, which are the same for every noun. */
export const verbs: Readonly<Record<string, readonly string[]>> = {
  ls: ['list'],
  show: ['get'],
  create: ['add'],
  set: [],
  rm: ['delete', 'remove', 'destroy'],
  // instances
  events: [],
  retry: [],
  release: [],
  adopt: [],
  // keys, accounts, members
  revoke: [],
  disable: [],
  'set-password': [],
  'allow-keys': [],
  'add-member': [],
  'remove-member': [],
  switch: [],
  // alarms, losses, maintenance
  ack: [],
  accept: [],
  'clean-up': [],
  plan: [],
  cancel: [],
  // money and mail
  'top-up': ['add'],
  grant: [],
  adjust: [],
  end: [],
  resend: [],
  // remote systems
  check: [],
  health: [],
  test: [],
  verdict: [],
};

/** Gives each verb below a noun its aliases. */
export function addVerbAliases(noun: Command): void {
  for (const command of noun.commands) {
    for (const alias of verbs[command.name()] ?? []) command.alias(alias);
    addVerbAliases(command);
  }
}
