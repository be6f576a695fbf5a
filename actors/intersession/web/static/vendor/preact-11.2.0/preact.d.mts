// What the pages use of the library; its own types come with its package.
export interface VNode {
  type: unknown;
  props: Record<string, unknown>;
  key: unknown;
}
export class Component<P = any> {
  constructor(props: any);
  props: P;
  setState(state: object): void;
}
export function Fragment(props: { children?: unknown }): VNode;
export function createRef<T extends Element = HTMLElement>(): { current: T | null };
export function h(type: unknown, props: object | null, ...children: unknown[]): VNode;
export function render(node: unknown, into: Element): void;
