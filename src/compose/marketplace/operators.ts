import { hostname } from 'node:os';
import { packageVersion } from '../../config/package-root.ts';
import { createConsole } from '../../marketplace/console/app.ts';
import { createOperatorApp } from '../../marketplace/http/operator/app.ts';
import { Operators } from '../../operator-kit/keys.ts';
import { type OperatorParts, operatorDepsOf } from './operator-deps.ts';

export interface MarketplaceOperators {
  operators: Operators;
  /** The operators' apps on the admin listener, by path. */
  apps: {
    '/operator': ReturnType<typeof createOperatorApp>;
    '/console': ReturnType<typeof createConsole>;
  };
}

/** Composes the operators' part of a marketplace's admin listener. It is loaded only with that listener. */
export function composeOperators(parts: OperatorParts): MarketplaceOperators {
  const { store, clock, log } = parts;
  const operators = new Operators({ store, clock, log, command: 'berth marketplace operators' });
  const deps = { ...operatorDepsOf(parts), operators };
  const console = createConsole({ ...deps, version: packageVersion(), server: hostname() });
  const operator = createOperatorApp(deps, { nextId: parts.nextId });
  return { operators, apps: { '/operator': operator, '/console': console } };
}
