// What the pages use of the library; its own types come with its package.
declare const htm: {
  bind<R>(
    draw: (type: any, props: Record<string, any> | null, ...children: any[]) => R,
  ): (strings: TemplateStringsArray, ...values: Part[]) => R;
};
export default htm;
