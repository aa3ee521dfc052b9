import { readPackageJson } from '../package-root.ts';
import { isObject } from '../wire/json.ts';
import type { Call } from '../wire/wire.ts';

/** An endpoint of the contract. */
export interface Endpoint {
  method: Call['method'];
  /** As it is written there, e.g. `/instances/{instanceId}`. */
  path: string;
  /** Of the storage tier, which a target may lack. */
  isStorage: boolean;
}

const METHODS = ['GET', 'POST', 'DELETE', 'PUT', 'PATCH'] as const;

/** What is Berth's own is there too, and of no contract. */
const BEYOND = '/x/';

/** Every endpoint that requires a credential: all but the one that hands out tokens. */
export function protectedEndpoints(): Endpoint[] {
  const document = readPackageJson('openapi/orchestrator.v1.json');
  const paths = isObject(document) && isObject(document['paths']) ? document['paths'] : {};
  return Object.entries(paths)
    .filter(([path]) => path !== '/auth/token' && !path.startsWith(BEYOND))
    .flatMap(([path, operations]) =>
      METHODS.filter((method) => isObject(operations) && method.toLowerCase() in operations).map(
        (method) => ({
          method,
          path,
          isStorage: path.startsWith('/volumes'),
        }),
      ),
    );
}
