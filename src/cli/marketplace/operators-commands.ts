import type { Command } from 'commander';
import { auditCommandOn } from '../audit-command.ts';
import { operatorsCommandOn } from '../operators-command.ts';
import { onMarketplaceDatabase } from './database.ts';

/** `berth marketplace operators`: the keys of the admin listener's API and console. */
export function marketplaceOperatorsCommand(): Command {
  return operatorsCommandOn(onMarketplaceDatabase, 'berth marketplace operators');
}

/** `berth marketplace audit`: the actions of operators. */
export function marketplaceAuditCommand(): Command {
  return auditCommandOn(onMarketplaceDatabase);
}
