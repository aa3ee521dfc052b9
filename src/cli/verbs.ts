import type { Command } from 'commander';

/** What is done to a noun: each verb with the other words for it, which mean the same wherever the verb is. */
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
  // what is outside
  check: [],
  health: [],
  import: [],
  test: [],
  record: [],
  replay: [],
};

/** Gives each verb below a noun its aliases. */
export function addVerbAliases(noun: Command): void {
  for (const command of noun.commands) {
    for (const alias of verbs[command.name()] ?? []) command.alias(alias);
    addVerbAliases(command);
  }
}
