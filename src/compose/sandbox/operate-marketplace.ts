import { createOperatorApp } from '../../marketplace/http/operator/app.ts';
import { MARKETPLACE } from '../../sandbox/options.ts';
import type { Server } from '../../sandbox/provider.ts';
import type { Marketplace } from '../marketplace/marketplace.ts';
import { operatorDepsOf } from '../marketplace/operator-deps.ts';
import { controlOperator, operatorUrl } from './control-operator.ts';

/** Creates the operator API of the marketplace. */
export function operateMarketplace({ operatorParts }: Marketplace): Server {
  const { nextId } = operatorParts;
  const deps = { ...operatorDepsOf(operatorParts), operators: controlOperator };
  return createOperatorApp(deps, { nextId, sandboxUrl: operatorUrl(MARKETPLACE) });
}
