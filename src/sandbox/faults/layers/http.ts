import { routeOf, withoutBase } from '../../operations.ts';
import type { Exchange, Layer } from '../../provider.ts';
import type { ArmedFaults, Occasion } from '../arming.ts';
import type { HttpFault } from '../fault.ts';
import type { MachineFaults } from './machines.ts';

/** Faults between the client and the server: of connections, statuses and answers. */
export function httpFaults(armed: ArmedFaults, machines: MachineFaults): Layer {
  /** Passes a request through the armed faults from the `index`th on. */
  async function pass(
    request: Request,
    occasion: Occasion,
    next: (request: Request) => Promise<Response>,
    index: number,
  ): Promise<Response> {
    for (const [offset, each] of armed.all.slice(index).entries()) {
      if (!isHttp(each.fault)) continue;
      const trigger = armed.trigger(each, occasion);
      if (trigger === undefined) continue;
      return each.fault.answer({ ...trigger, request }, (changed = request) =>
        pass(changed, occasion, next, index + offset + 1),
      );
    }
    return next(request);
  }

  return async (exchange, next) => {
    const { provider, request } = exchange;
    if (armed.all.length === 0) return next(request);
    const occasion = occasionOf(exchange);
    await machines.trigger(provider, occasion);
    return pass(request, { ...occasion, request }, next, 0);
  };
}

function isHttp(fault: { layer: string }): fault is HttpFault {
  return fault.layer === 'connection' || fault.layer === 'answer' || fault.layer === 'status';
}

function occasionOf({ provider, request, connection }: Exchange): Occasion {
  const { pathname } = new URL(request.url);
  const { route, resource } = routeOf(provider, request.method, pathname);
  return { provider, connection, on: route, at: `${request.method} ${withoutBase(pathname)}`, resource };
}
